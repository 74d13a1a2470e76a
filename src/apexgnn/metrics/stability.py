"""Stability over seeds: does the explanation of one graph depend on the dice?

For every pair of runs of the same explainer on the same graph:

    Spearman  correlation of the ranks of the node scores (ties share their mean rank)
    Jaccard   |S ∩ S′| / |S ∪ S′| of the best (1 − s)·N nodes

averaged over the pairs. A deterministic explainer has 1 in both. Constant scores have no rank correlation:
it counts as 1 if both runs are constant, else as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from apexgnn.errors import InputError
from apexgnn.metrics.masking import selections
from apexgnn.metrics.protocol import Protocol


@dataclass(frozen=True, slots=True, eq=False)
class Stability:
    """Agreement among the runs, for every graph.

    Attributes:
        spearman: [G].
        jaccard: [G].
        sparsity: at which the sets are compared.
        runs: how many seeds.
    """

    spearman: Tensor
    jaccard: Tensor
    sparsity: float
    runs: int


def ranks(scores: Tensor) -> Tensor:
    """Ranks from 1, ties sharing their mean rank.

    >>> ranks(torch.tensor([5.0, 1.0, 5.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    ordered = scores.sort().values
    below = torch.searchsorted(ordered, scores, right=False)
    up_to = torch.searchsorted(ordered, scores, right=True)
    return (below + up_to + 1).double() / 2


def spearman(first: Tensor, second: Tensor) -> float:
    """Rank correlation of two score vectors.

    >>> round(spearman(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 4.0, 9.0])), 12)
    1.0
    """
    a, b = (r - r.mean() for r in (ranks(first), ranks(second)))
    scale = a.norm() * b.norm()
    if scale == 0:
        return float(a.norm() == b.norm())
    return float(a @ b / scale)


def stability(runs: Sequence[Sequence[Tensor]], *, sparsity: float = 0.7) -> Stability:
    """Agreement of node scores over seeds.

    Args:
        runs: runs[r][g] are the node scores of graph g in run r.
        sparsity: of the sets that are compared.

    >>> same = [torch.tensor([0.1, 0.9, 0.5])]
    >>> result = stability([same, same])
    >>> float(result.jaccard)
    1.0
    """
    if len(runs) < 2 or len({len(run) for run in runs}) != 1:
        raise InputError("runs", got=f"{len(runs)} runs", expected="two or more, over the same graphs")
    protocol = Protocol(sparsities=(sparsity,))
    rows = []
    for scores in zip(*runs, strict=True):
        sets = [selections(one, protocol)[0] for one in scores]
        pairs = list(combinations(range(len(scores)), 2))
        rank = sum(spearman(scores[i], scores[j]) for i, j in pairs) / len(pairs)
        overlap = sum(float((sets[i] & sets[j]).sum() / (sets[i] | sets[j]).sum()) for i, j in pairs)
        rows.append((rank, overlap / len(pairs)))
    table = torch.tensor(rows, dtype=torch.float64).reshape(-1, 2)
    return Stability(table[:, 0], table[:, 1], sparsity, len(runs))
