"""Explanations from one gradient of the logit at the input.

    saliency           |∂f/∂x|                             (Simonyan et al., 2014)
    input × gradient   x ⊙ ∂f/∂x                           (Shrikumar et al., 2016)

Where f is positively homogeneous of degree one, f(τx) = τ f(x) for τ > 0, as a ReLU network without biases is, the
gradient is the same all along the ray from zero to x. There input × gradient *is* the Aumann–Shapley attribution
with a zero baseline, and complete (the X-gradient of Hesse et al., 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer


def _gradient(case: Case) -> Tensor:
    x = case.question.x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(case.score(x).sum(), x)
    return gradient


@dataclass(frozen=True, kw_only=True)
class Saliency(Explainer):
    """The absolute gradient.

    >>> from torch_geometric.data import Data
    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> bool((Saliency().explain(GIN(2, 2, hidden_channels=4), data).features >= 0).all())
    True
    """

    name: ClassVar[str] = "saliency"
    claims: ClassVar[Claims] = Claims(signed=False, dummy=True)
    batched: ClassVar[bool] = True

    def _scores(self, case: Case) -> Scores:
        return Scores(features=_gradient(case).abs())


@dataclass(frozen=True, kw_only=True)
class InputXGradient(Explainer):
    """Input times gradient.

    >>> from torch_geometric.data import Data
    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.zeros(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> float(InputXGradient().explain(GIN(2, 2, hidden_channels=4), data).features.abs().max())
    0.0
    """

    name: ClassVar[str] = "input_x_gradient"
    claims: ClassVar[Claims] = Claims(dummy=True, linear=True)
    batched: ClassVar[bool] = True

    def _scores(self, case: Case) -> Scores:
        return Scores(features=case.question.x * _gradient(case))
