"""What every engine returns, before it becomes an `Attribution`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from apexgnn.attribution import Certificate


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """φ [N, F], the explained columns [G], f(X) and f(X′) there [G], and why φ is exact, if it is."""

    features: Tensor
    target: Tensor
    score: Tensor
    baseline_score: Tensor
    certificate: Certificate | None = None


def averaged(shares: Sequence[Shares]) -> Shares:
    """The mean over baselines; score, target and certificate are the same for all."""
    if len(shares) == 1:
        return shares[0]
    return replace(
        shares[0],
        features=torch.stack([s.features for s in shares]).mean(dim=0),
        baseline_score=torch.stack([s.baseline_score for s in shares]).mean(dim=0),
    )


def pick(logits: Tensor, column: Tensor) -> Tensor:
    """The entries [G] of [G, C] in the explained columns.

    >>> pick(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 0])).tolist()
    [2.0, 3.0]
    """
    return logits.gather(1, column.unsqueeze(1)).squeeze(1)
