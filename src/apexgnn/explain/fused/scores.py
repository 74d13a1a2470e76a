"""Where the way back begins: the scores, and the adjoint of the last stage.

    f = v · (w + w²/2) + b,     ∂G/∂w(τ_i) = ω_i v ⊙ y(τ_i),     y = 1 + w

at the Gauss–Legendre points τ_i with weights ω_i, v being the row of the last layer that is explained.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.explain.fused.fold import Folded
from apexgnn.path.quadrature import quadrature


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The explained column of every score, and its value at both ends of the path."""

    target: Tensor
    end: Tensor
    start: Tensor


def differentiate_scores(folded: Folded, w: Tensor, target: Tensor | None) -> tuple[Scores, Tensor]:
    """The scores, and the adjoint of w from w [points, τ = 1, τ = 0] of the last stage; w is used up."""
    ends = torch.addcmul(w[-2:], w[-2:], w[-2:], value=0.5)
    logits = ends @ folded.weight.t() + folded.bias
    if target is None:
        target = logits[0].argmax(dim=1)
    end, begin = logits.gather(2, target.expand(2, -1).unsqueeze(2)).squeeze(2)
    weights = torch.tensor(quadrature("gauss-legendre", len(w) - 2).weights).to(w.dtype)
    y = w[:-2].add_(1).mul_(weights.view(-1, 1, 1))
    return Scores(target, end, begin), y.mul_(folded.weight[target])
