"""`apexgnn reproduce all` and the single experiments: figures and tables of the paper beside Table 1."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from apexgnn.errors import InputError
from apexgnn.experiments import pages
from apexgnn.experiments.programme import EXPERIMENTS, Plan, perform
from apexgnn.experiments.subjects import Field
from apexgnn.experiments.table1 import DATASETS

HELP = {
    "datasets": "The statistics of the data sets, beside the paper's.",
    "fidelity-plus": "Fidelity⁺ against sparsity, every method on its own architecture.",
    "fidelity-minus": "Fidelity⁻ against sparsity, every method on its own architecture.",
    "disentangle": "Both fidelities, all methods on the same PolyGIN.",
    "areas": "Areas under the fidelities; robust fidelity, ground truth; where APEX is first, tied or behind.",
    "completeness": "Completeness error against the number of gradients, rule by rule, in both precisions.",
    "why": "Interactions, peaks, baselines: why single-node methods can be ahead at high sparsity.",
    "qualitative": "Pictures of houses, sentences and molecules, and numbers that check what they seem to show.",
    "runtime": "Seconds per explanation; wants a quiet machine.",
    "pages": "Put the numbers of the results into docs/paper.md and README.md.",
}

CORES = os.cpu_count() or 1
Datasets = Annotated[list[str] | None, typer.Option("--dataset", help="Only these; may be repeated.")]
Seeds = Annotated[int, typer.Option(help="Models of seeds 0 … N − 1.", min=1)]
Fewer = Annotated[
    list[str] | None, typer.Option(metavar="NAME=N", help="A data set on fewer seeds; may be repeated.")
]
Graphs = Annotated[int, typer.Option(help="At most so many test graphs of each data set.", min=1)]
Quick = Annotated[bool, typer.Option("--quick", help="One seed, 20 graphs: to see that it works.")]
Jobs = Annotated[int, typer.Option(help="Processes; cells are shared among them.", min=1)]
Out = Annotated[
    Path | None, typer.Option(help="Folder of the results; by default results, with --quick runs/quick.")
]
Runs = Annotated[Path, typer.Option(help="Folder of the models of Table 1; missing ones are trained.")]
Cells = Annotated[
    Path, typer.Option(help="Folder of finished cells; a run that was stopped goes on from it.")
]
Data = Annotated[Path | None, typer.Option(help="Folder of raw data; by default what APEXGNN_DATA names.")]


def add_to(app: typer.Typer) -> None:
    """Give the group `reproduce` a command for each experiment, and `all`."""
    for name, text in HELP.items():
        if name in EXPERIMENTS:
            app.command(name, help=text)(_command((name,)))
    app.command("pages", help=HELP["pages"])(pages_command)
    app.command(
        "all",
        help="All of it but the pages, Table 1 on --seeds seeds; may be stopped at any point and started again.",
    )(_command(tuple(EXPERIMENTS)))


def _command(names: tuple[str, ...]) -> Callable[..., None]:
    def run(
        *,
        dataset: Datasets = None,
        seeds: Seeds = 3,
        fewer: Fewer = None,
        graphs: Graphs = 100,
        quick: Quick = False,
        jobs: Jobs = CORES,
        out: Out = None,
        runs: Runs = Path("runs/table1"),
        cells: Cells = Path("runs/cells"),
        data: Data = None,
    ) -> None:
        wanted = tuple(dataset or DATASETS)
        for name in wanted:
            if name not in DATASETS:
                raise InputError("dataset", got=repr(name), expected="one of " + ", ".join(DATASETS))
        field = Field(runs=runs, seeds=seeds, fewer=_counts(fewer or []), graphs=graphs, root=data)
        plan = Plan(out or Path("runs/quick" if quick else "results"), cells, field, wanted, jobs)
        plan = plan.quick() if quick else plan
        perform(plan, names, report=Console(soft_wrap=True).print)

    return run


def _counts(fewer: list[str]) -> tuple[tuple[str, int], ...]:
    """NAME=N as pairs."""
    found = []
    for text in fewer:
        name, _, count = text.partition("=")
        if name not in DATASETS or not count.isdigit() or int(count) < 1:
            raise InputError(
                "fewer", got=repr(text), expected="NAME=N, a data set's name and a number above 0"
            )
        found.append((name, int(count)))
    return tuple(found)


def pages_command(
    *,
    results: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    page: Annotated[
        list[Path] | None,
        typer.Option(help="Pages with marked blocks; by default docs/paper.md and README.md."),
    ] = None,
) -> None:
    """Put the numbers of the results into the pages."""
    pages.reproduce(results, page or pages.PAGES, report=Console(soft_wrap=True).print)
