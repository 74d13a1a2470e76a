"""The work behind all fidelity results: every method on both models of every data set and seed, done once.

A bench is one model: a data set, a kind, a seed. Benches of seed 0 come first, so that there is something to look at
early; processes that share the store take different benches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from apexgnn.experiments.cells import Store
from apexgnn.experiments.explanations import all_scores
from apexgnn.experiments.lineup import METHODS, methods_of
from apexgnn.experiments.measures import Array, Measured, Memory, measure, robust, truth_aucs
from apexgnn.experiments.progress import Progress
from apexgnn.experiments.subjects import Field, Subject, subject, trained
from apexgnn.training.recipes import MODELS

Report = Callable[[str], None]
WEIGHTS = {
    "flowx": 4.0,
    "gnnexplainer": 5.0,
    "pgexplainer": 3.0,
    "apex-permutation": 2.0,
}  # of 1 for the rest


@dataclass(frozen=True, slots=True)
class Bench:
    """One model to explain.

    >>> str(Bench("bbbp", "gin", 0))
    'bbbp gin seed 0'
    """

    dataset: str
    kind: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset} {self.kind} seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Laboratory:
    """Where results are kept, what is examined, and which data sets are there."""

    store: Store
    field: Field
    datasets: tuple[str, ...]
    kinds: tuple[str, ...] = MODELS

    def benches(self) -> list[Bench]:
        """All models, seed by seed."""
        return [
            Bench(name, kind, seed)
            for seed in range(self.field.seeds)
            for name in self.datasets
            if seed < self.field.seeds_of(name)
            for kind in self.kinds
        ]


@lru_cache(maxsize=4)
def subject_of(field: Field, dataset: str, seed: int, report: Report = print) -> Subject:
    """The subject, remembered for as long as its data set is at hand."""
    return subject(dataset, seed, field, report=report)


def train(laboratory: Laboratory, report: Report) -> None:
    """Train the models that are not there, shared among processes."""
    benches = {f"train {bench}".replace(" ", "-"): bench for bench in laboratory.benches()}

    def work(name: str) -> None:
        bench = benches[name]
        trained(bench.dataset, bench.kind, bench.seed, laboratory.field, report=report)

    laboratory.store.share(benches, work)


def fill(laboratory: Laboratory, *, report: Report = print) -> None:
    """Explain and measure everything that is not in the store yet."""
    train(laboratory, report)
    benches = {str(bench).replace(" ", "-"): bench for bench in laboratory.benches()}
    weights = {
        f"{bench} {method.name}": WEIGHTS.get(method.name, 1.0)
        for bench in benches.values()
        for method in methods_of(bench.kind)
    }
    progress = Progress(weights, report)

    def work(name: str) -> None:
        bench = benches[name]
        memory: Memory = {}
        for method in methods_of(bench.kind):
            measured(laboratory, bench, method.name, memory=memory)
            if method.signed and bench.kind == "polygin":
                measured(laboratory, bench, method.name, ranking="absolute", memory=memory)
            if bench.seed == 0 and bench.dataset != "ba-shapes":
                robustness(laboratory, bench, method.name)
            progress.done(f"{bench} {method.name}")

    laboratory.store.share(benches, work)


def measured(
    laboratory: Laboratory,
    bench: Bench,
    method: str,
    *,
    ranking: str = "signed",
    memory: Memory | None = None,
) -> Measured:
    """Fidelity of one method on one bench, from the store where it is there."""
    chosen = subject_of(laboratory.field, bench.dataset, bench.seed)
    return measure(laboratory.store, chosen, bench.kind, METHODS[method], ranking=ranking, memory=memory)


def robustness(laboratory: Laboratory, bench: Bench, method: str) -> tuple[Array, Array]:
    """Robust fidelities of one method on one bench."""
    chosen = subject_of(laboratory.field, bench.dataset, bench.seed)
    return robust(laboratory.store, chosen, bench.kind, METHODS[method])


def agreement(laboratory: Laboratory, bench: Bench, method: str) -> tuple[Array, Sequence[int]]:
    """AUC against the known reason on one bench, and the graphs."""
    chosen = subject_of(laboratory.field, bench.dataset, bench.seed)
    return truth_aucs(chosen, all_scores(laboratory.store, chosen, bench.kind, METHODS[method])), chosen.ids
