"""Integrated Gradients as peers, by our own rules and by Captum's (Sundararajan et al., 2017).

    φ ≈ (X − X′) ⊙ Σ_k w_k ∇f(X′ + τ_k (X − X′))

Captum's default is Gauss–Legendre with 50 points; its weights pass through float32, so in float64 it stops near
1e-9 relative. Captum is given many path points in one call: the graph side by side with itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from apexgnn.errors import InputError, MissingDependencyError
from apexgnn.explain import integrated_gradients
from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer
from apexgnn.replicas import ROWS_PER_CALL, evaluate_copies

CAPTUM = ("gausslegendre", "riemann_left", "riemann_middle", "riemann_right", "riemann_trapezoid")


@dataclass(frozen=True, kw_only=True)
class IntegratedGradients(Explainer):
    """Our own integrated gradients; `rule` and `steps` as in `apexgnn.integrated_gradients`.

    >>> import torch
    >>> from torch_geometric.data import Data
    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> IntegratedGradients(rule="midpoint", steps=8).explain(GIN(2, 2, hidden_channels=4), data).evaluations
    8
    """

    rule: str = "gauss-legendre"
    steps: int = 50

    name: ClassVar[str] = "ig"
    claims: ClassVar[Claims] = Claims(dummy=True, linear=True)
    batched: ClassVar[bool] = True

    def _scores(self, case: Case) -> Scores:
        question = case.question
        result = integrated_gradients(
            question.model,
            question.data,
            rule=self.rule,
            steps=self.steps,
            target=case.target,
            baseline=question.baseline,
            index=question.index,
            call=question.call,
        )
        return Scores(features=result.features, evaluations=result.evaluations)


@dataclass(frozen=True, kw_only=True)
class CaptumIG(Explainer):
    """Captum's integrated gradients; `method` and `steps` are its own.

    >>> import torch
    >>> from torch_geometric.data import Data
    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> CaptumIG(steps=8).explain(GIN(2, 2, hidden_channels=4), data).features.shape
    torch.Size([3, 2])
    """

    method: str = "gausslegendre"
    steps: int = 50

    name: ClassVar[str] = "captum_ig"
    claims: ClassVar[Claims] = Claims(dummy=True, linear=True)

    def _scores(self, case: Case) -> Scores:
        try:
            from captum.attr import IntegratedGradients as Captum
        except ImportError as error:
            raise MissingDependencyError("captum_ig needs Captum: pip install 'apexgnn[peers]'") from error
        if self.method not in CAPTUM:
            expected = "one of " + ", ".join(map(repr, CAPTUM))
            raise InputError("captum_ig option method", got=repr(self.method), expected=expected)
        question, column = case.question, int(case.target)

        def forward(x: Tensor) -> Tensor:
            logits = evaluate_copies(
                lambda data: question.call(question.model, data),
                question.data,
                x=x,
                index=case.index,
                rows_per_call=x.size(0) * x.size(1),
            )
            return logits[:, column]

        features = Captum(forward).attribute(
            question.x.unsqueeze(0),
            baselines=question.baseline.unsqueeze(0),
            method=self.method,
            n_steps=self.steps,
            internal_batch_size=max(1, ROWS_PER_CALL // question.x.size(0)),
        )
        return Scores(features=features[0], evaluations=self.steps)
