"""Table 1 as a page: means beside the paper's, and PolyGIN compared with GIN.

The comparison is paired by seed: d_i = accuracy(PolyGIN, i) − accuracy(GIN, i), with the 95 % interval
mean(d) ± t · sd(d)/√n of Student's t with n − 1 degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from apexgnn.errors import InputError
from apexgnn.experiments.table1 import DATASETS, Cell, Splits, read_cells
from apexgnn.files import write_atomically

PAPER = {  # mean and standard deviation of the test accuracy in percent
    "ba-shapes": {"gin": (97.29, 0.77), "polygin": (96.43, 0.71)},
    "bbbp": {"gin": (89.90, 1.09), "polygin": (89.85, 0.81)},
    "bace": {"gin": (83.62, 1.19), "polygin": (84.34, 1.86)},
    "graph-sst2": {"gin": (90.95, 0.20), "polygin": (90.23, 0.17)},
    "mutagenicity": {"gin": (81.78, 0.40), "polygin": (80.98, 0.61)},
}
LABELS = {"gin": "GIN", "polygin": "PolyGIN", "polygin-plus": "PolyGIN+"}
SAID = (
    "Test accuracy of the validation-best weights, mean ± standard deviation over seeds; the last column is the",
    "mean of the differences by seed with the 95 % interval of Student's t. One split for all seeds: the published",
    "one for BA-Shapes and Graph-SST2, random 80/10/10 with seed 0 for the molecules. The test part was used",
    "neither to choose a recipe nor to choose a model.",
)
OTHERWISE = {
    Splits.BY_SEED: "The same with a random 80/10/10 split drawn anew by every seed",
    Splits.SCAFFOLD: "The same on the scaffold split, seeds for initialisation and order alone",
}

# Student's t, 97.5 % quantile, for 1 … 29 degrees of freedom
T975 = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452),
)


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


def table(cells: Sequence[Cell]) -> str:
    """Markdown: mean ± standard deviation beside the paper's, and the paired difference from GIN.

    >>> cell = {"dataset": "bbbp", "model": "gin", "recipe": "fast", "seed": 0, "parameters": 545402, "epochs": 40}
    >>> print(table([cell | {"test_accuracy": 90.0}]).splitlines()[-1])
    | bbbp | fast | GIN | 545,402 | 40 | 1 | 90.00 | 89.90 ± 1.09 |  |
    """
    lines = [
        "| data set | recipe | model | parameters | epochs | seeds | test accuracy, % | paper, % | minus GIN |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for recipe_name in ("fast", "paper"):
        for name in DATASETS:
            of = {kind: _by_seed(cells, name, kind, recipe_name) for kind in LABELS}
            for kind in LABELS:
                if of[kind]:
                    row = _row(name, recipe_name, kind, list(of[kind].values()))
                    lines.append(f"{row} {_gap(of[kind], of['gin']) if kind != 'gin' else ''} |")
    return "\n".join(lines) + "\n"


def below(cells: Sequence[Cell]) -> str:
    """Where the mean of recipe `fast` does not reach the paper's.

    >>> cell = {"dataset": "bbbp", "model": "gin", "recipe": "fast", "seed": 0, "test_accuracy": 88.9}
    >>> below([cell])
    "Below the paper's mean: GIN on bbbp (by 1.00)."
    """
    found = []
    for name, paper in PAPER.items():
        for kind, (mean, _) in paper.items():
            mine = [cell["test_accuracy"] for cell in _by_seed(cells, name, kind, "fast").values()]
            if mine and fmean(mine) < mean:
                found.append(f"{LABELS[kind]} on {name} (by {mean - fmean(mine):.2f})")
    return f"Below the paper's mean: {', '.join(found) or 'nothing'}."


def _by_seed(cells: Sequence[Cell], name: str, kind: str, recipe_name: str) -> dict[int, Cell]:
    wanted = {"dataset": name, "model": kind, "recipe": recipe_name}
    return {cell["seed"]: cell for cell in cells if wanted.items() <= cell.items()}


def _gap(first: dict[int, Cell], second: dict[int, Cell]) -> str:
    both = sorted(first.keys() & second.keys())
    if len(both) < 2:
        return ""
    return str(paired(*([of[seed]["test_accuracy"] for seed in both] for of in (first, second))))


def _row(name: str, recipe_name: str, kind: str, cells: Sequence[Cell]) -> str:
    accuracies = [cell["test_accuracy"] for cell in cells]
    spread = f" ± {stdev(accuracies):.2f}" if len(accuracies) > 1 else ""
    paper = "{:.2f} ± {:.2f}".format(*PAPER[name][kind]) if kind in PAPER[name] else ""
    epochs = max(cell["epochs"] for cell in cells)
    return (
        f"| {name} | {recipe_name} | {LABELS[kind]} | {cells[0]['parameters']:,} | {epochs} | {len(cells)} "
        f"| {fmean(accuracies):.2f}{spread} | {paper} |"
    )


def write_table(folder: Path) -> str:
    """Write `table1.md` from the cells in a folder, with what must be known to read it."""
    cells, others = (read_cells(folder / way.file) for way in (Splits.FIXED, Splits.BY_SEED))
    everything = cells + others
    encoders = sorted({cell["encoder"] for cell in everything if cell["encoder"]})
    machines = sorted({f"{cell['machine']}, torch {cell['versions']['torch']}" for cell in everything})
    parts = ["# Table 1: accuracy of GIN and PolyGIN\n", table(cells), below(cells), *SAID]
    parts += [f"Graph-SST2 is rebuilt with the encoder {name}, not the paper's." for name in encoders]
    parts += [f"Machine: {name}." for name in machines]
    for way in (Splits.BY_SEED, Splits.SCAFFOLD):
        mine = [cell for cell in others if cell["splits"] == way]
        if mine:
            parts += ["", f"## {OTHERWISE[way]}\n", table(mine).rstrip()]
    text = "\n".join(parts) + "\n"
    write_atomically(folder / "table1.md", text)
    return text
