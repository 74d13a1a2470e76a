"""`apexgnn train`: one model on one data set, into a folder."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from apexgnn.errors import MissingDependencyError
from apexgnn.training import Epoch, recipe
from apexgnn.training.run import Workload, run

app = typer.Typer()


@app.command()
def train(
    dataset: Annotated[str, typer.Argument(help="As `apexgnn data list` names it; classification only.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder for the model, the metrics and the state of the run.")],
    model: Annotated[str, typer.Option(help="polygin, gin or polygin-plus.")] = "polygin",
    seed: Annotated[int, typer.Option(help="Decides initialisation, order and dropout.")] = 0,
    recipe_name: Annotated[str, typer.Option("--recipe", help="fast or paper.")] = "fast",
    data: Annotated[
        Path | None, typer.Option(help="Folder of raw data; by default what APEXGNN_DATA names.")
    ] = None,
    tensorboard: Annotated[bool, typer.Option(help="Write the metrics for TensorBoard too.")] = False,
) -> None:
    """Train PolyGIN or GIN on a data set; a run that was interrupted goes on where it stopped."""
    console = Console(stderr=True)
    follow = _tensorboard(out) if tensorboard else None
    chosen = recipe(recipe_name, dataset=dataset.removesuffix("-published"), model=model)
    with console.status(f"Reading {dataset}"):
        work = Workload.of(dataset, root=data)
    columns = (TextColumn("epoch"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=chosen.epochs)

        def report(row: Epoch) -> None:
            described = f"loss {row.train_loss:.3f}  validation {row.validation_accuracy:.1f} %"
            bar.update(task, completed=row.epoch, description=described)
            if follow:
                follow(row)

        outcome = run(work, model, chosen, seed=seed, folder=out, report=report)
    Console().print(
        f"{work.name}, {model}, seed {seed}: test {outcome.test_accuracy:.2f} %, validation "
        f"{outcome.validation_accuracy:.2f} %, train {outcome.train_accuracy:.2f} % "
        f"(epoch {outcome.best_epoch} of {outcome.epochs}, {outcome.seconds:.0f} s). Saved in {out}."
    )


def _tensorboard(folder: Path) -> Callable[[Epoch], None]:
    """What writes each epoch's numbers into the folder as TensorBoard reads them."""
    try:
        summaries = import_module("torch.utils.tensorboard")
    except ImportError as error:
        raise MissingDependencyError(
            "TensorBoard is not installed. To fix: pip install tensorboard, or read metrics.csv"
        ) from error
    writer = summaries.SummaryWriter(str(folder))

    def write(row: Epoch) -> None:
        for name in ("train_loss", "validation_loss", "validation_accuracy", "learning_rate"):
            writer.add_scalar(name, getattr(row, name), row.epoch)
        writer.flush()

    return write
