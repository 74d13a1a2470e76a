"""Table 1 of the paper: does the polynomial constraint cost accuracy?

Five data sets, GIN and PolyGIN, ten seeds each. Every cell trains one model on one fixed split (so seeds differ in
initialisation, order and dropout), takes the validation-best weights, and appends one JSON object to a file:

    cells that stand in the file are skipped,  a cell that was killed goes on from its last state,
    several processes may work on one file (each cell is locked while it runs)

How much a number owes to the one split is measured beside it, in a file and a section of its own: splits drawn by the
seed of the run ("by-seed"), or test molecules with scaffolds that training never saw ("scaffold").
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from apexgnn.choice import Choice
from apexgnn.training.recipes import MODELS, recipe
from apexgnn.training.run import Workload, run

DATASETS = ("ba-shapes", "bbbp", "bace", "graph-sst2", "mutagenicity")
SOURCE = {"ba-shapes": "ba-shapes-published"}  # the table is about the authors' graph and masks

Cell = dict[str, Any]


class Splits(Choice):
    """How the data are divided over the seeds of a table.

    >>> [str(way) for way in Splits]
    ['fixed', 'by-seed', 'scaffold']
    """

    FIXED = "fixed"  # the published split, or the random one of seed 0
    BY_SEED = "by-seed"  # the run's seed draws the split as well
    SCAFFOLD = "scaffold"

    @property
    def file(self) -> str:
        """Where its cells go: what is not on the table's own split is never mixed with it."""
        return "table1.jsonl" if self is Splits.FIXED else "table1-splits.jsonl"

    def of(self, work: Workload, seed: int) -> Workload:
        """The data set divided this way for this seed."""
        if self is Splits.FIXED:
            return work
        return work.divided("random" if self is Splits.BY_SEED else "scaffold", seed)


def read_cells(path: Path) -> list[Cell]:
    """The finished cells; a line cut short by a crash is not one.

    >>> read_cells(Path("nowhere.jsonl"))
    []
    """
    cells = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            cells.append(json.loads(line))
        except ValueError:
            continue
    return cells


def append_cell(path: Path, cell: Cell) -> None:
    """One line, in one write, behind whatever other processes wrote."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(cell, ensure_ascii=False) + "\n"
    torn = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, ("\n" * torn + line).encode())
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def claimed(folder: Path) -> Iterator[bool]:
    """Whether this process may work in the folder; the lock goes with the process, however it ends.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, claimed(Path(folder)) as first:
    ...     with claimed(Path(folder)) as second:
    ...         print(first, second)
    True False
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def reproduce(
    results: Path,
    *,
    datasets: Iterable[str] = DATASETS,
    models: Iterable[str] = MODELS,
    seeds: Iterable[int] = range(10),
    recipe_name: str = "fast",
    splits: str = "fixed",
    runs: Path = Path("runs/table1"),
    report: Callable[[str], None] = print,
) -> None:
    """Train every cell that is not in `results` yet, and append it there.

    Args:
        results: a file of JSON lines.
        datasets, models, seeds: which cells.
        recipe_name: "fast" or "paper".
        splits: "fixed", "by-seed" or "scaffold".
        runs: folder for the models and the states of unfinished cells.
        report: told of every finished cell.
    """
    models, seeds, way = tuple(models), tuple(seeds), Splits(splits)
    other = {} if way is Splits.FIXED else {"splits": str(way)}
    for name in datasets:
        chosen = {kind: recipe(recipe_name, dataset=name, model=kind) for kind in models}
        work = None
        for seed in seeds:
            for kind in models:
                cell = {"dataset": name, "model": kind, "recipe": recipe_name, "seed": seed, **other}
                folder = runs / "-".join(map(str, cell.values()))
                with claimed(folder) as mine:
                    if not mine or any(cell.items() <= done.items() for done in read_cells(results)):
                        continue
                    work = work or Workload.of(SOURCE.get(name, name))
                    outcome = run(way.of(work, seed), kind, chosen[kind], seed=seed, folder=folder)
                    append_cell(results, asdict(outcome) | other)
                    report(
                        f"{name} {kind} {recipe_name} seed {seed}: test {outcome.test_accuracy:.2f} %, "
                        f"validation {outcome.validation_accuracy:.2f} %, {outcome.seconds:.0f} s"
                    )
