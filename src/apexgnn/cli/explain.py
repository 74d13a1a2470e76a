"""`apexgnn explain MODEL INPUT`: what a model says of a molecule, or of a table of them, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from apexgnn.cli import certify as certifying
from apexgnn.cli import molecule_view as view
from apexgnn.data import Row, Table, read_table
from apexgnn.errors import InputError
from apexgnn.files import write_atomically
from apexgnn.molecules import (
    Explained,
    MoleculeModel,
    check_ending,
    explain_molecule,
    explain_rows,
    open_model,
    write_explanations,
)

SOME_FAILED = 1  # the exit code when rows of a table have errors
TABLES = (".csv", ".tsv", ".txt")


def explain(
    model: Annotated[str, typer.Argument(help="A model of the zoo (bbbp, bace, mutagenicity) or a folder.")],
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="A SMILES string, or a table (CSV) with a SMILES column.")
    ],
    *,
    smiles_column: Annotated[
        str | None, typer.Option(help="Of the table; by default smiles, canonical_smiles, mol or structure.")
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="A column of the table that must not repeat.")] = None,
    target: Annotated[
        str | None, typer.Option(help="The class to explain, by label or number; else the predicted one.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Where the path starts: average (atom of the training data; the default where the model knows it), "
            "mean (of the molecule's own atoms), zero, or numbers: 1.5 or 6,0,…"
        ),
    ] = None,
    sort: Annotated[bool, typer.Option("--sort", help="List the largest shares first.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write a .csv or .json with all columns of the input and a status per row."),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Write a drawing: a file; for a table a folder with one for each row.")
    ] = None,
) -> None:
    """Predict molecules and attribute the logit to their atoms, exactly.

    Exit code 0: all explained. 1: done, but some rows of the table have errors (see their status). 2: refused.
    """
    if out is not None:
        check_ending(out)
    start, console = read_baseline(baseline), Console(highlight=False)
    chosen = open_model(model)
    chosen.target(target)
    if not _is_table(source) and smiles_column is None:
        found = explain_molecule(chosen, source, target=target, baseline=start)
        view.show(console, chosen, found, largest_first=sort)
        items = [Explained(Row(1, {"smiles": found.smiles}, found.smiles), found)]
        columns: tuple[str, ...] = ("smiles",)
        if svg is not None:
            with _writing("--svg", svg):
                write_atomically(svg, view.picture(chosen, found))
    else:
        table = read_table(source, smiles_column, id_column=id_column)
        if out is not None and out.exists() and out.samefile(table.path):
            raise InputError("--out", got="the input itself", expected="another file")
        items, columns = _explained(chosen, table, target=target, baseline=start, svg=svg), table.columns
        _list(console, chosen, items)
    if out is not None:
        with _writing("--out", out):
            write_explanations(out, items, chosen, columns=columns)
    for path in filter(None, (out, svg)):
        console.print(f"Written: {path}", soft_wrap=True, markup=False)
    if failed := sum(item.explanation is None for item in items):
        Console(stderr=True).print(f"{failed} of {len(items)} rows have errors.", style="red")
        raise typer.Exit(SOME_FAILED)


def read_baseline(text: str | None) -> Any:
    """What `--baseline` means: numbers where it has them; names are the room's to know.

    >>> read_baseline(None), read_baseline("mean"), read_baseline("0.5"), read_baseline("6,0")
    (None, 'mean', 0.5, [6.0, 0.0])
    """
    try:
        numbers = [float(part) for part in (text or "").split(",")]
    except ValueError:
        return text
    return numbers if len(numbers) > 1 else numbers[0]


def _is_table(source: str) -> bool:
    return os.path.isfile(source) or source.lower().endswith(TABLES)


def _explained(
    model: MoleculeModel, table: Table, *, target: str | None, baseline: Any, svg: Path | None
) -> list[Explained]:
    """All rows, with a bar that knows how many there are; reading them once also finds a file that is not text."""
    columns = (TextColumn("explaining"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    total = sum(1 for _ in table)
    items = []
    if svg is not None:
        with _writing("--svg", svg):
            svg.mkdir(parents=True, exist_ok=True)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        for item in explain_rows(model, table, target=target, baseline=baseline):
            items.append(item)
            if svg is not None and item.explanation is not None:
                digits = len(str(total))
                name = f"row-{item.row.number:0{digits}}.svg"
                with _writing("--svg", svg):
                    write_atomically(svg / name, view.picture(model, item.explanation))
            bar.advance(task)
    return items


def _list(console: Console, model: MoleculeModel, items: list[Explained]) -> None:
    """The first rows, then the first errors."""
    console.print(view.listing(items))
    if len(items) > view.SHOWN:
        console.print(f"… and {len(items) - view.SHOWN} more rows", style="dim")
    console.print(certifying.summary(model.certificate), soft_wrap=True)
    if any(item.explanation is not None and view.far(item.explanation) for item in items):
        console.print(
            "Some baselines score far from any molecule: another --baseline says more.", style="yellow"
        )
    for item in [item for item in items if item.explanation is None][: view.SHOWN]:
        console.print(Text(item.row.error, style="red"), soft_wrap=True)


@contextmanager
def _writing(option: str, path: Path) -> Iterator[None]:
    """What the file system says against it, said of the option."""
    try:
        yield
    except OSError as error:
        got = f"{path} ({error.strerror})"
        raise InputError(option, got=got, expected="a place that can be written to") from error
