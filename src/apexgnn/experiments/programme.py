"""All experiments of the paper in their order, at full size or small, in one process or several.

Everything expensive is kept in a store of cells (see `cells`), so a run that was stopped goes on, and several processes
may work on one store. `quick` is the same programme on one seed and few graphs, to see that all of it works; its
numbers are not the results.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

import torch

from apexgnn.errors import DataError
from apexgnn.experiments import areas, convergence, datasets, fidelity, qualitative, runtime, why
from apexgnn.experiments.bench import Laboratory, Report, fill, train
from apexgnn.experiments.cells import Store
from apexgnn.experiments.subjects import Field, available
from apexgnn.experiments.table1 import DATASETS, Splits, append_cell, read_cells
from apexgnn.experiments.table1_page import write_table
from apexgnn.nn import read_checkpoint

Experiment = Callable[[Laboratory, Path, Report], None]
ORDER = ("bbbp", "bace", "mutagenicity", "ba-shapes", "graph-sst2")  # the largest last


def table1(laboratory: Laboratory, out: Path, report: Report) -> None:
    """Table 1 for the models of the programme; those that are not there are trained."""
    train(laboratory, report)
    file = out / Splits.FIXED.file
    for bench in laboratory.benches():
        folder = laboratory.field.folder(bench.dataset, bench.kind, bench.seed)
        cell = read_checkpoint(folder).metadata["outcome"]
        name = {key: cell[key] for key in ("dataset", "model", "recipe", "seed")}
        if not any(name.items() <= known.items() for known in read_cells(file)):
            append_cell(file, cell)
    write_table(out)
    report(f"table1: {len(read_cells(file))} cells in {file}")


EXPERIMENTS: dict[str, Experiment] = {
    "table1": table1,
    "datasets": lambda lab, out, report: datasets.reproduce(
        lab.datasets, out, root=lab.field.root, report=report
    ),
    "fidelity-plus": lambda lab, out, report: fidelity.reproduce(lab, out, "fidelity-plus", report=report),
    "fidelity-minus": lambda lab, out, report: fidelity.reproduce(lab, out, "fidelity-minus", report=report),
    "disentangle": lambda lab, out, report: fidelity.reproduce(lab, out, "disentangle", report=report),
    "areas": lambda lab, out, report: areas.reproduce(lab, out, report=report),
    "completeness": lambda lab, out, report: convergence.reproduce(lab, out, report=report),
    "why": lambda lab, out, report: why.reproduce(lab, out, report=report),
    "qualitative": lambda lab, out, report: qualitative.reproduce(lab, out, report=report),
    "runtime": lambda lab, out, report: runtime.reproduce(lab, out, report=report),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, where, and how much of it.

    Attributes:
        out: folder of the results.
        cells: folder of the store.
        field: models, seeds, graphs, data.
        datasets: which, by name; all by default.
        jobs: processes.

    >>> Plan(Path("results"), Path("runs/cells"), Field()).quick().field.seeds
    1
    """

    out: Path
    cells: Path
    field: Field
    datasets: tuple[str, ...] = DATASETS
    jobs: int = 1

    def quick(self) -> Plan:
        """The same at a small size: one seed, twenty graphs of each data set."""
        return replace(self, field=replace(self.field, seeds=1, graphs=min(self.field.graphs, 20), learn=20))

    def laboratory(self, report: Report = print) -> Laboratory:
        """The store and the data sets that are at hand."""
        names = [name for name in ORDER if name in self.datasets]
        there = tuple(available(self.field, names, report=report))
        if not there:
            fix = "name the folder of raw data with --data or APEXGNN_DATA"
            raise DataError("data", got="no data set that can be read", expected="at least one", fix=fix)
        return Laboratory(Store(self.cells), self.field, there)


def perform(plan: Plan, names: tuple[str, ...] = tuple(EXPERIMENTS), *, report: Report = print) -> None:
    """Do these experiments one after the other; what several processes can share is shared."""
    started = monotonic()
    laboratory = plan.laboratory(report)
    if plan.jobs > 1:
        torch.set_num_threads(1)
    with helpers(laboratory, plan.jobs - 1):
        for name in names:
            report(f"== {name}")
            EXPERIMENTS[name](laboratory, plan.out, report)
    report(f"done in {(monotonic() - started) / 60:.1f} min; results in {plan.out}")


@contextmanager
def helpers(laboratory: Laboratory, count: int) -> Iterator[None]:
    """Processes that work off the cells of the fidelity experiments and of completeness meanwhile, and then end."""
    context = multiprocessing.get_context("spawn")
    started = [context.Process(target=_help, args=(laboratory,), daemon=True) for _ in range(count)]
    for process in started:
        process.start()
    try:
        yield
    finally:
        for process in started:
            process.terminate()
            process.join()


def _help(laboratory: Laboratory) -> None:
    torch.set_num_threads(1)
    fill(laboratory, report=_nothing)
    convergence.computed(laboratory, _nothing)
    why.computed(laboratory, _nothing)


def _nothing(line: str) -> None:
    """Helpers do not speak."""
