"""`apexgnn benchmark`: measure on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from apexgnn.benchmark import Settings, run
from apexgnn.benchmark.report import claims_table
from apexgnn.benchmark.speed import PARTS

app = typer.Typer(help="Measure on this machine.", no_args_is_help=True, rich_markup_mode=None)

NAMES = ", ".join(part.name for part in PARTS)


@app.callback()
def benchmark() -> None:
    """Measure on this machine."""


@app.command()
def speed(
    *,
    quick: Annotated[bool, typer.Option(help="Small sizes, few repetitions: does everything run?")] = False,
    part: Annotated[list[str] | None, typer.Option(help=f"Only this one; may be repeated: {NAMES}.")] = None,
    resume: Annotated[bool, typer.Option(help="Leave out the parts that were measured before.")] = False,
    threads: Annotated[int, typer.Option(min=1, help="Of torch.")] = 2,
    seed: Annotated[int, typer.Option(help="Of weights and graphs.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for speed.json, speed.md and pictures.")] = Path(
        "results"
    ),
) -> None:
    """Time exact attribution side by side with gradients, quadrature, Captum and PyG's explainers."""
    console = Console(highlight=False)
    settings = Settings(threads=threads, quick=quick, seed=seed)
    record = run(part or (), settings=settings, folder=out, resume=resume, report=console.print)
    console.print(Markdown(claims_table(record, [p for p in PARTS if p.name in record["parts"]])))
