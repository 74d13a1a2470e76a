"""The choices behind a fidelity number, in one place, carried by every result."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from apexgnn.choice import Choice
from apexgnn.errors import InputError

SPARSITIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MOST_EXHAUSTIVE_NODES = 7  # 7! = 5040 permutations


class Masking(Choice):
    """What happens to a node that is masked.

    permutation   its features are replaced by those of the node that a permutation of the graph puts there
    baseline      its features are replaced by the baseline
    edges         its edges go, its features stay
    """

    PERMUTATION = "permutation"
    BASELINE = "baseline"
    EDGES = "edges"


class Ranking(Choice):
    """Whether nodes are ranked by their score or by its absolute value."""

    SIGNED = "signed"
    ABSOLUTE = "absolute"


class Change(Choice):
    """Whether the change of the probability keeps its sign (the paper, DIG) or not (GraphFramEx)."""

    SIGNED = "signed"
    ABSOLUTE = "absolute"


class Label(Choice):
    """Which class's probability is followed."""

    PREDICTED = "predicted"
    TRUE = "true"


class Output(Choice):
    """Whether the softmax probability is followed or the model's raw output."""

    PROBABILITY = "probability"
    RAW = "raw"


@dataclass(frozen=True, kw_only=True, eq=False)
class Protocol:
    """How fidelity is measured; the defaults are the paper's.

    Attributes:
        sparsities: each keeps the round((1 − s)·N) best nodes, at least one; halves round up.
        masking: what masking a node means.
        permutations: over how many random permutations the masked output is averaged, or "all" of the N!;
            they depend on the seed and the graph's place alone: all explainers and sparsities meet the same.
        baseline: for baseline masking: a number or [F].
        ranking: by signed or by absolute score, descending; ties go to the node with the lower number.
        change: signed differences, or absolute ones (of the average over permutations).
        label: the class whose output is followed.
        output: the softmax probability, or the raw output.
        correct_only: leave out the graphs (or nodes) that the model gets wrong.
        seed: of the permutations.

    >>> Protocol(masking="baseline").masking
    <Masking.BASELINE: 'baseline'>
    """

    sparsities: tuple[float, ...] = SPARSITIES
    masking: Masking | str = Masking.PERMUTATION
    permutations: int | str = 10
    baseline: float | Tensor = 0.0
    ranking: Ranking | str = Ranking.SIGNED
    change: Change | str = Change.SIGNED
    label: Label | str = Label.PREDICTED
    output: Output | str = Output.PROBABILITY
    correct_only: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choice in (
            ("masking", Masking),
            ("ranking", Ranking),
            ("change", Change),
            ("label", Label),
            ("output", Output),
        ):
            object.__setattr__(self, name, choice(getattr(self, name)))
        object.__setattr__(self, "sparsities", tuple(float(s) for s in self.sparsities))
        if not self.sparsities or not all(0 <= s < 1 for s in self.sparsities):
            raise InputError(
                "sparsities", got=repr(self.sparsities), expected="one or more numbers in [0, 1)"
            )
        if self.permutations != "all" and not (isinstance(self.permutations, int) and self.permutations > 0):
            raise InputError(
                "permutations", got=repr(self.permutations), expected='a positive number or "all"'
            )
