"""`apexgnn reproduce`: the tables and figures of the paper, made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from apexgnn import zoo
from apexgnn.cli import reproduce_paper
from apexgnn.experiments import shelf
from apexgnn.experiments import table1 as experiment
from apexgnn.experiments.table1_page import write_table
from apexgnn.training.recipes import MODELS

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Make the tables and figures of the paper anew.",
)


@app.callback()
def reproduce() -> None:
    """Make the tables and figures of the paper anew."""


@app.command()
def table1(
    *,
    seeds: Annotated[int, typer.Option(help="Seeds 0 … N − 1.", min=1, max=30)] = 10,
    recipe: Annotated[str, typer.Option(help="fast or paper.")] = "fast",
    dataset: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="gin, polygin or polygin-plus; by default the first two.")
    ] = None,
    splits: Annotated[
        experiment.Splits, typer.Option(help="One split for all seeds, one drawn by each, or by scaffold.")
    ] = experiment.Splits.FIXED,
    out: Annotated[Path, typer.Option(help="Folder for table1.jsonl and table1.md.")] = Path("results"),
) -> None:
    """Accuracy of GIN and PolyGIN; finished cells are kept, so it may be stopped and started at will."""
    console = Console()
    experiment.reproduce(
        out / splits.file,
        datasets=dataset or experiment.DATASETS,
        models=model or MODELS,
        seeds=range(seeds),
        recipe_name=recipe,
        splits=splits,
        report=console.print,
    )
    console.print(Markdown(write_table(out)))


@app.command("zoo")
def fill_the_zoo(
    *,
    results: Annotated[Path, typer.Option(help="The cells to choose from.")] = Path("results/table1.jsonl"),
    runs: Annotated[Path, typer.Option(help="Folder of the run folders.")] = Path("runs/table1"),
    dataset: Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")] = None,
    out: Annotated[Path, typer.Option(help="The shelf; by default the installed package's.")] = zoo.SHELF,
) -> None:
    """Fill the zoo: the validation-best PolyGIN of each data set, trained again where its run folder is gone."""
    shelf.fill(results, runs, datasets=dataset or experiment.DATASETS, shelf=out, report=Console().print)


reproduce_paper.add_to(app)
