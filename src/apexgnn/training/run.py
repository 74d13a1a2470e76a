"""One training run on a named data set, from raw files to a saved model and its numbers.

A folder of a run holds `state.safetensors` while it runs (and goes on from there after a kill), `metrics.csv` with a
row per epoch, and in the end `config.json` and the weights, as `apexgnn.nn.load` reads them, with the outcome as
metadata.
"""

from __future__ import annotations

import csv
import io
import os
import platform
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from apexgnn import __version__
from apexgnn.data import GraphDataset, Split, load
from apexgnn.errors import InputError
from apexgnn.files import write_atomically
from apexgnn.nn import GIN, PolyGIN, save
from apexgnn.training.evaluate import accuracy, evaluate
from apexgnn.training.loop import Trained, fit
from apexgnn.training.quotient import Quotient
from apexgnn.training.recipes import Recipe
from apexgnn.training.state import STATE, Epoch, Keeping

SPLIT_SEED = 0  # one split for all seeds of a table: they differ in initialisation, order and dropout alone


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A data set ready for many runs.

    Attributes:
        name: of the data set, whichever copy of it was read (`ba-shapes-published` is `ba-shapes`).
        data: the graphs.
        quotient: their colour classes.
        split: training, validation, test.
    """

    name: str
    data: GraphDataset
    quotient: Quotient
    split: Split

    @classmethod
    def of(cls, name: str, *, root: Path | None = None) -> Workload:
        """Read a data set and refine its colours.

        >>> Workload.of("ba-shapes").split
        Split(random, seed=0: 560/70/70)
        """
        data = load(name, root=root)
        if data.task == "regression":
            raise InputError("dataset", got=f"{name!r}, a regression", expected="a classification data set")
        return cls(
            name.removesuffix("-published"),
            data,
            Quotient.of(data.graphs, task=data.task),
            data.split(seed=SPLIT_SEED),
        )

    def divided(self, kind: str, seed: int) -> Workload:
        """The same data, split anew.

        >>> Workload.of("ba-shapes").divided("random", 3).split
        Split(random, seed=3: 560/70/70)
        """
        return replace(self, split=self.data.split(kind, seed=seed))

    def model(self, kind: str, recipe: Recipe) -> PolyGIN | GIN:
        """The architecture of the paper's table, or "polygin-plus": with residual layers and θ per channel.

        >>> from apexgnn.training import recipe
        >>> model = Workload.of("ba-shapes").model("gin", recipe("fast", dataset="ba-shapes", model="gin"))
        >>> sum(p.numel() for p in model.parameters())
        546304
        """
        options: dict[str, Any] = {"task": self.data.task, "dropout": recipe.dropout}
        if kind == "gin":
            return GIN(self.data.num_features, self.data.num_classes, **options)
        options["theta_init"] = recipe.theta_init
        if kind == "polygin-plus":
            options |= {"residual": True, "theta": "channel"}
        return PolyGIN(self.data.num_features, self.data.num_classes, **options)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run gave, as one JSON object; accuracies in percent.

    `seconds` is processor time divided by the number of threads, so that pauses of the machine do not count.
    """

    dataset: str
    model: str
    recipe: str
    seed: int
    parameters: int
    epochs: int
    best_epoch: int
    seconds: float
    train_accuracy: float
    validation_accuracy: float
    test_accuracy: float
    split: str
    encoder: str | None
    threads: int
    machine: str
    versions: dict[str, str]
    commit: str | None


def run(
    work: Workload,
    kind: str,
    recipe: Recipe,
    *,
    seed: int,
    folder: Path,
    report: Callable[[Epoch], None] | None = None,
) -> Outcome:
    """Train a "polygin" or a "gin" in `folder`, or finish what was begun there.

    >>> import tempfile
    >>> short = Recipe("short", epochs=2, learning_rate=1e-4, prepared=True, clip=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = run(Workload.of("ba-shapes"), "gin", short, seed=0, folder=Path(folder))
    ...     sorted(path.suffix for path in Path(folder).iterdir())
    ['.csv', '.json', '.safetensors']
    >>> outcome.parameters, outcome.epochs
    (546304, 2)
    """
    folder.mkdir(parents=True, exist_ok=True)
    keeping = Keeping(folder)
    trained = fit(
        work.model(kind, recipe), work.quotient, work.split, recipe, seed=seed, keeping=keeping, report=report
    )
    outcome = _outcome(work, kind, recipe, trained, seed)
    write_atomically(folder / "metrics.csv", _table(trained))
    save(trained.model, folder, metadata={"labels": list(work.data.labels), "outcome": asdict(outcome)})
    (folder / STATE).unlink(missing_ok=True)
    return outcome


def _outcome(work: Workload, kind: str, recipe: Recipe, trained: Trained, seed: int) -> Outcome:
    split = work.split
    return Outcome(
        dataset=work.name,
        model=kind,
        recipe=recipe.name,
        seed=seed,
        parameters=sum(p.numel() for p in trained.model.parameters()),
        epochs=len(trained.history),
        best_epoch=trained.best.epoch,
        seconds=round(trained.seconds, 2),
        train_accuracy=evaluate(trained.model, work.quotient, split.train.numpy())[0],
        validation_accuracy=accuracy(trained.model, work.data, split.val),
        test_accuracy=accuracy(trained.model, work.data, split.test),
        split=split.kind if split.seed is None else f"{split.kind}, seed {split.seed}",
        encoder=work.data.provenance.made.get("encoder"),
        threads=torch.get_num_threads(),
        machine=machine(),
        versions={name: version(name) for name in ("torch", "torch_geometric", "numpy")}
        | {"apexgnn": __version__, "python": platform.python_version()},
        commit=commit(),
    )


def machine() -> str:
    """The processor's name and the number of cores.

    >>> "cores" in machine()
    True
    """
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} cores"


def commit() -> str | None:
    """The commit that this code stands at, when it runs from its repository.

    >>> known = commit()
    >>> known is None or len(known) >= 4
    True
    """
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _table(trained: Trained) -> str:
    """The metrics as CSV, one row per epoch."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Epoch)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in trained.history)
    return text.getvalue()
