"""Table 1 of the paper: does the polynomial constraint cost accuracy?

Five data sets, GIN and PolyGIN, ten seeds each. Every cell trains one model on one fixed split (so seeds differ in
initialisation, order and dropout), takes the validation-best weights, and appends one JSON object to a file:

    cells that stand in the file are skipped,  a cell that was killed goes on from its last state,
    several processes may work on one file (each cell is locked while it runs)

The comparison is paired by seed: d_i = accuracy(PolyGIN, i) − accuracy(GIN, i), with the 95 % interval
mean(d) ± t · sd(d)/√n of Student's t with n − 1 degrees of freedom.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from apexgnn.errors import InputError
from apexgnn.files import write_atomically
from apexgnn.training.recipes import MODELS, recipe
from apexgnn.training.run import Outcome, Workload, run

PAPER = {  # mean and standard deviation of the test accuracy in percent
    "ba-shapes": {"gin": (97.29, 0.77), "polygin": (96.43, 0.71)},
    "bbbp": {"gin": (89.90, 1.09), "polygin": (89.85, 0.81)},
    "bace": {"gin": (83.62, 1.19), "polygin": (84.34, 1.86)},
    "graph-sst2": {"gin": (90.95, 0.20), "polygin": (90.23, 0.17)},
    "mutagenicity": {"gin": (81.78, 0.40), "polygin": (80.98, 0.61)},
}
DATASETS = tuple(PAPER)
SOURCE = {"ba-shapes": "ba-shapes-published"}  # the table is about the authors' graph and masks
LABELS = {"gin": "GIN", "polygin": "PolyGIN"}

# Student's t, 97.5 % quantile, for 1 … 29 degrees of freedom
T975 = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452),
)

Cell = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference of means with its 95 % interval.

    >>> print(Difference(0.5, -0.25, 1.25, pairs=10))
    +0.50 [-0.25, +1.25]
    """

    mean: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.mean:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


def paired(first: Sequence[float], second: Sequence[float]) -> Difference:
    """mean(first − second), with the interval of Student's t; 2 to 30 pairs.

    >>> print(paired([3.0, 5.0], [1.0, 2.0]))
    +2.50 [-3.85, +8.85]
    """
    differences = [a - b for a, b in zip(first, second, strict=True)]
    n = len(differences)
    if not 2 <= n <= len(T975) + 1:
        raise InputError("pairs", got=str(n), expected=f"2 to {len(T975) + 1}")
    half = T975[n - 2] * stdev(differences) / math.sqrt(n)
    return Difference(fmean(differences), fmean(differences) - half, fmean(differences) + half, n)


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


def append_cell(path: Path, outcome: Outcome) -> None:
    """One line, in one write, behind whatever other processes wrote."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(asdict(outcome), ensure_ascii=False) + "\n"
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
    runs: Path = Path("runs/table1"),
    report: Callable[[str], None] = print,
) -> None:
    """Train every cell that is not in `results` yet, and append it there.

    Args:
        results: a file of JSON lines.
        datasets, models, seeds: which cells.
        recipe_name: "fast" or "paper".
        runs: folder for the models and the states of unfinished cells.
        report: told of every finished cell.
    """
    models, seeds = tuple(models), tuple(seeds)
    for name in datasets:
        chosen = {kind: recipe(recipe_name, dataset=name, model=kind) for kind in models}
        work = None
        for seed in seeds:
            for kind in models:
                cell = {"dataset": name, "model": kind, "recipe": recipe_name, "seed": seed}
                with claimed(runs / "-".join(map(str, cell.values()))) as mine:
                    if not mine or any(cell.items() <= done.items() for done in read_cells(results)):
                        continue
                    work = work or Workload.of(SOURCE.get(name, name))
                    folder = runs / "-".join(map(str, cell.values()))
                    outcome = run(work, kind, chosen[kind], seed=seed, folder=folder)
                    append_cell(results, outcome)
                    report(
                        f"{name} {kind} {recipe_name} seed {seed}: test {outcome.test_accuracy:.2f} %, "
                        f"validation {outcome.validation_accuracy:.2f} %, {outcome.seconds:.0f} s"
                    )


def table(cells: Sequence[Cell]) -> str:
    """Markdown: mean ± standard deviation beside the paper's, and the paired difference PolyGIN − GIN.

    >>> cell = {"dataset": "bbbp", "model": "gin", "recipe": "fast", "seed": 0, "parameters": 545402, "epochs": 40}
    >>> print(table([cell | {"test_accuracy": 90.0}]).splitlines()[-1])
    | bbbp | fast | GIN | 545,402 | 40 | 1 | 90.00 | 89.90 ± 1.09 |  |
    """
    lines = [
        "| data set | recipe | model | parameters | epochs | seeds | test accuracy, % | paper, % | PolyGIN − GIN |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for recipe_name in ("fast", "paper"):
        for name in DATASETS:
            of = {kind: _by_seed(cells, name, kind, recipe_name) for kind in MODELS}
            for kind in reversed(MODELS):
                if of[kind]:
                    gap = _gap(of) if kind == "polygin" else ""
                    lines.append(_row(name, recipe_name, kind, list(of[kind].values())) + f" {gap} |")
    return "\n".join(lines) + "\n"


def _by_seed(cells: Sequence[Cell], name: str, kind: str, recipe_name: str) -> dict[int, Cell]:
    wanted = {"dataset": name, "model": kind, "recipe": recipe_name}
    return {cell["seed"]: cell for cell in cells if wanted.items() <= cell.items()}


def _gap(of: dict[str, dict[int, Cell]]) -> str:
    both = sorted(of["polygin"].keys() & of["gin"].keys())
    if len(both) < 2:
        return ""
    return str(paired(*([of[kind][seed]["test_accuracy"] for seed in both] for kind in ("polygin", "gin"))))


def _row(name: str, recipe_name: str, kind: str, cells: Sequence[Cell]) -> str:
    accuracies = [cell["test_accuracy"] for cell in cells]
    spread = f" ± {stdev(accuracies):.2f}" if len(accuracies) > 1 else ""
    paper = "{:.2f} ± {:.2f}".format(*PAPER[name][kind])
    epochs = max(cell["epochs"] for cell in cells)
    return (
        f"| {name} | {recipe_name} | {LABELS[kind]} | {cells[0]['parameters']:,} | {epochs} | {len(cells)} "
        f"| {fmean(accuracies):.2f}{spread} | {paper} |"
    )


def write_table(results: Path, target: Path) -> str:
    """Write the table of `results` to `target`, with what must be known to read it."""
    cells = read_cells(results)
    encoders = sorted({cell["encoder"] for cell in cells if cell["encoder"]})
    machines = sorted({f"{cell['machine']}, torch {cell['versions']['torch']}" for cell in cells})
    notes = [
        "Test accuracy of the validation-best weights, mean ± standard deviation over seeds; the last column is the",
        "mean of the differences by seed with the 95 % interval of Student's t. One split for all seeds: the published",
        "one for BA-Shapes and Graph-SST2, random 80/10/10 with seed 0 for the molecules. The test part was used",
        "neither to choose a recipe nor to choose a model.",
        *(f"Graph-SST2 is rebuilt with the encoder {name}, not the paper's." for name in encoders),
        *(f"Machine: {name}." for name in machines),
    ]
    text = "# Table 1: accuracy of GIN and PolyGIN\n\n" + table(cells) + "\n" + "\n".join(notes) + "\n"
    write_atomically(target, text)
    return text
