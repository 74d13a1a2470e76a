"""`apexgnn reproduce`: the tables of the paper, made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from apexgnn.experiments import table1 as experiment
from apexgnn.training.recipes import MODELS

app = typer.Typer(help="Make the tables of the paper anew.", no_args_is_help=True)


@app.callback()
def reproduce() -> None:
    """Make the tables of the paper anew."""


@app.command()
def table1(
    *,
    seeds: Annotated[int, typer.Option(help="Seeds 0 … N − 1.", min=1, max=30)] = 10,
    recipe: Annotated[str, typer.Option(help="fast or paper.")] = "fast",
    dataset: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only gin or polygin.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for table1.jsonl and table1.md.")] = Path("results"),
) -> None:
    """Accuracy of GIN and PolyGIN; finished cells are kept, so it may be stopped and started at will."""
    console = Console()
    results = out / "table1.jsonl"
    experiment.reproduce(
        results,
        datasets=dataset or experiment.DATASETS,
        models=model or MODELS,
        seeds=range(seeds),
        recipe_name=recipe,
        report=console.print,
    )
    console.print(Markdown(experiment.write_table(results, out / "table1.md")))
