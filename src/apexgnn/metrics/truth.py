"""Agreement with a known explanation: the planted motif, the functional group.

    AUC          the chance that a true element scores above a false one, ties counting half (Mann–Whitney)
    precision@k  how many of the k best elements are true, k the number of true ones unless given;
                 elements tied at the k-th place share the places that are left

Elements are nodes or edges. A graph whose elements are all true or all false has no AUC: NaN, and a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.errors import InputError
from apexgnn.metrics.intervals import Interval, bootstrap


@dataclass(frozen=True, slots=True, eq=False)
class GroundTruth:
    """AUC and precision of every graph; NaN where not defined.

    Attributes:
        auc: [G].
        precision: [G].
        true: [G], how many elements are true.
        total: [G], how many elements there are.
        notes: what was left out.
    """

    auc: Tensor
    precision: Tensor
    true: Tensor
    total: Tensor
    notes: tuple[str, ...]

    def intervals(
        self, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
    ) -> tuple[Interval, Interval]:
        """Bootstrap intervals over graphs of the mean AUC and the mean precision."""
        return (
            bootstrap(self.auc, level=level, resamples=resamples, seed=seed),
            bootstrap(self.precision, level=level, resamples=resamples, seed=seed),
        )


def auc(scores: Tensor, truth: Tensor) -> float:
    """The Mann–Whitney estimate of P(true above false), ties counting half; NaN if either kind is missing.

    >>> auc(torch.tensor([3.0, 2.0, 2.0, 1.0]), torch.tensor([1, 1, 0, 0]))
    0.875
    """
    positive, negative = scores[truth.bool()], scores[~truth.bool()]
    if not len(positive) or not len(negative):
        return float("nan")
    ordered = negative.sort().values
    below = torch.searchsorted(ordered, positive, right=False)
    up_to = torch.searchsorted(ordered, positive, right=True)
    return float((below + up_to).double().mean() / 2 / len(negative))


def precision_at(scores: Tensor, truth: Tensor, k: int) -> float:
    """The share of true elements among the k best; ties at the k-th place count by their own share.

    >>> precision_at(torch.tensor([3.0, 2.0, 2.0, 1.0]), torch.tensor([1, 1, 0, 0]), 2)
    0.75
    """
    threshold = scores.sort(descending=True).values[k - 1]
    above, tied = scores > threshold, scores == threshold
    places = k - int(above.sum())
    return float((truth[above].sum() + places * truth[tied].double().mean()) / k)


def ground_truth(scores: Sequence[Tensor], truth: Sequence[Tensor], *, k: int | None = None) -> GroundTruth:
    """Compare scores with the truth, graph by graph.

    Args:
        scores: one tensor per graph: node scores [N], or edge scores [E].
        truth: of the same shapes, nonzero where the element belongs to the explanation.
        k: how many best elements to judge; the number of true ones by default.

    >>> result = ground_truth([torch.tensor([0.9, 0.1, 0.5])], [torch.tensor([1, 0, 1])])
    >>> float(result.auc), float(result.precision)
    (1.0, 1.0)
    """
    if len(scores) != len(truth) or any(s.shape != t.shape for s, t in zip(scores, truth, strict=True)):
        raise InputError("truth", got="shapes unlike the scores'", expected="one entry for every score")
    rows = []
    for one, true in zip(scores, (t.bool() for t in truth), strict=True):
        if not bool(torch.isfinite(one).all()):
            raise InputError("scores", got="NaN or infinite scores", expected="finite scores")
        count = int(true.sum())
        best = min(k or count, len(one))
        precision = precision_at(one, true, best) if count > 0 and best else float("nan")
        rows.append((auc(one, true), precision, count, len(one)))
    columns = torch.tensor(rows, dtype=torch.float64).reshape(-1, 4).unbind(1)
    undefined = int(columns[0].isnan().sum())
    notes = (f"{undefined} of {len(rows)} graphs have only one kind of element: no AUC",) if undefined else ()
    return GroundTruth(columns[0], columns[1], columns[2].long(), columns[3].long(), notes)
