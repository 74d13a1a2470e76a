"""Fill the zoo from Table 1: per data set the PolyGIN with the best validation accuracy, and its card.

Among equals the lowest seed. The test accuracy plays no part in the choice. A model whose run folder is gone is
trained again, from the same seed; what it then says of itself is the accuracy of the weights that ship.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from apexgnn import zoo
from apexgnn.errors import CheckpointError
from apexgnn.experiments.table1 import DATASETS, SOURCE, Cell, read_cells
from apexgnn.files import write_atomically
from apexgnn.nn import load, read_checkpoint, save
from apexgnn.training.recipes import recipe
from apexgnn.training.run import Workload, run

ACCURACIES = ("train_accuracy", "validation_accuracy", "test_accuracy")


@dataclass(frozen=True, slots=True)
class Use:
    """What a model is for, in words."""

    question: str
    caution: str


_MOLECULES = (
    "Not a basis for decisions about safety or treatment: it knows some thousand molecules of one collection."
)
USES = {
    "ba-shapes": Use(
        "which role has a node: base, or top, middle or bottom of a house?",
        "A synthetic test bed for explanations; it says nothing about other graphs.",
    ),
    "bbbp": Use("does a molecule pass the blood–brain barrier?", _MOLECULES),
    "bace": Use("does a molecule inhibit human β-secretase 1?", _MOLECULES),
    "graph-sst2": Use(
        "is a film review's sentence negative or positive?",
        "Needs the same parser and encoder for new sentences.",
    ),
    "mutagenicity": Use("is a molecule mutagenic in the Ames test?", _MOLECULES),
}


def best_cell(cells: Sequence[Cell], dataset: str) -> Cell | None:
    """The validation-best PolyGIN of recipe `fast`; of several cells of one seed the last counts.

    >>> rows = [{"dataset": "bbbp", "model": "polygin", "recipe": "fast", "seed": s, "validation_accuracy": v}
    ...         for s, v in ((0, 80.0), (1, 90.0), (2, 90.0))]
    >>> best_cell(rows, "bbbp")["seed"]
    1
    """
    wanted = {"dataset": dataset, "model": "polygin", "recipe": "fast"}
    mine = {cell["seed"]: cell for cell in cells if wanted.items() <= cell.items()}
    return max(mine.values(), key=lambda cell: (cell["validation_accuracy"], -cell["seed"]), default=None)


def fill(
    results: Path,
    runs: Path,
    *,
    datasets: Iterable[str] = DATASETS,
    shelf: Path = zoo.SHELF,
    report: Callable[[str], None] = print,
) -> list[str]:
    """Put the best models of `results` on the shelf, from their run folders; return their names.

    Args:
        results: the cells of Table 1.
        runs: the folder of run folders.
        datasets: only these.
        shelf: where to.
        report: told of each.
    """
    cells, filled = read_cells(results), []
    for name in datasets:
        cell = best_cell(cells, name)
        if cell is None:
            report(f"{name}: no PolyGIN of recipe fast in {results}")
            continue
        work = Workload.of(SOURCE.get(name, name))
        folder = runs / f"{name}-polygin-fast-{cell['seed']}"
        outcome = _outcome(work, cell, folder)
        metadata = _metadata(work, outcome)
        save(load(folder), shelf / name, metadata=metadata)
        write_atomically(shelf / name / "card.md", _card(name, outcome, metadata))
        filled.append(name)
        said = f"{name}: seed {outcome['seed']}, validation {outcome['validation_accuracy']:.2f} %"
        differs = any(outcome[key] != cell[key] for key in ACCURACIES)
        report(said + f"; {results} has {cell['validation_accuracy']:.2f} %" * differs)
    return filled


def _outcome(work: Workload, cell: Cell, folder: Path) -> Cell:
    """What the run of this cell gave, which is repeated where its model is not to be had."""
    try:
        about = read_checkpoint(folder)
    except CheckpointError:
        chosen = recipe(cell["recipe"], dataset=cell["dataset"], model=cell["model"])
        run(work, cell["model"], chosen, seed=cell["seed"], folder=folder)
        about = read_checkpoint(folder)
    outcome: Cell = about.metadata["outcome"]
    return outcome


def _metadata(work: Workload, outcome: Cell) -> dict[str, Any]:
    source = work.data.provenance
    metadata: dict[str, Any] = {
        "labels": list(work.data.labels),
        "task": work.data.task,
        "featurizer": work.data.featurizer,
        "source": source.source,
        "licence": source.licence,
        "sha256": source.sha256,
        "made": source.made,
        "outcome": outcome,
    }
    if work.data.featurizer:
        atoms = torch.cat([work.data[int(k)].x for k in work.split.train])
        metadata["average"] = atoms.double().mean(dim=0).tolist()
    return metadata


def _card(name: str, cell: Cell, metadata: dict[str, Any]) -> str:
    use = USES[name]
    labels = "\n".join(f"- {index}: {label}" for index, label in enumerate(metadata["labels"]))
    encoder = f"\n- Node features: the encoder {cell['encoder']}; they are part of the data set." * bool(
        cell["encoder"]
    )
    return f"""# {name}: PolyGIN

A graph network whose logits are polynomials of degree 16 in the node features, so that eight Gauss–Legendre
points attribute them exactly. It answers: {use.question}

| | |
|---|---|
| test accuracy | {cell["test_accuracy"]:.2f} % |
| validation accuracy | {cell["validation_accuracy"]:.2f} % |
| training accuracy | {cell["train_accuracy"]:.2f} % |
| parameters | {cell["parameters"]:,} |

## Labels
{labels}

## Data
- Source: {metadata["source"]}
- Licence as stated there: {metadata["licence"]}
- Split: {cell["split"]}{encoder}

## Training
Recipe `{cell["recipe"]}`, seed {cell["seed"]}, {cell["epochs"]} epochs; the seed with the best validation accuracy
of those in `results/table1.jsonl`, weights of epoch {cell["best_epoch"]}. Features enter as they are.

## Use
To try exact attribution on, and as a subject for research on explanations. {use.caution}
"""
