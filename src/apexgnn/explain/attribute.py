"""Exact Aumann–Shapley attribution.

With γ(τ) = X′ + τ(X − X′) and G(δ) = ∫₀¹ f(γ(τ) + δ) dτ,

    φ = (X − X′) ⊙ ∫₀¹ ∇f(γ(τ)) dτ = (X − X′) ⊙ ∂G/∂δ |_{δ=0},      Σφ = f(X) − f(X′).

If f has degree D along the path, ∇f has degree D − 1 there, and m = ⌈D/2⌉ Gauss–Legendre points integrate it
without error, as D − 1 ≤ 2m − 1. D is not declared but certified, by the pass that also computes the integral.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from apexgnn.attribution import Attribution, Certificate
from apexgnn.errors import NumericalError
from apexgnn.explain.certify import certificate_of
from apexgnn.explain.passes import carry
from apexgnn.explain.question import Call, Model, Question, Target, ask, resolve_target
from apexgnn.explain.remembered import Remembered
from apexgnn.explain.untouched import untouched
from apexgnn.path.quadrature import quadrature
from apexgnn.path.resolution import Resolution

_LAST_SEEN = Remembered[Certificate]()  # only a guess, which the pass itself proves again


def attribute(
    model: Model,
    data: Data,
    *,
    target: Target = None,
    baseline: Any = None,
    index: int | None = None,
    call: Call | None = None,
) -> Attribution:
    """The exact signed share of the score for every node and feature, or a refusal.

    Args:
        model: polynomial in its node features; called as PyTorch Geometric calls its models.
        data: a `Data` or `Batch`; a batch is explained in one pass.
        target: the output column, an int or one per graph; None explains the predicted class.
        baseline: where the path starts: None for zero, a number, [F] or [N, F].
        index: the node to explain, for a node task.
        call: `call(model, data)` for models with another signature.

    Raises:
        NotPolynomialError: if there is no certificate; nothing is ever approximated.

    >>> from apexgnn.nn import PolyGIN
    >>> _ = torch.manual_seed(0)
    >>> data = Data(x=torch.rand(3, 2).double(), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> result = attribute(PolyGIN(2, 2, hidden_channels=4).double().eval(), data)
    >>> result.features.shape, result.exact, result.evaluations, bool(result.residual.abs() < 1e-15)
    (torch.Size([3, 2]), True, 8, True)
    """
    question = ask(model, data, baseline=baseline, index=index, call=call)
    with untouched(model):
        certificate = _LAST_SEEN.get(model) or certificate_of(question)
        logits, start = question.logits(question.x), question.logits(question.baseline)
        column = resolve_target(target, logits)
        gradient, proven = _mean_gradient(question, column, certificate.points)
        if proven.points != certificate.points:  # the model has changed since it was last seen
            gradient, proven = _mean_gradient(question, column, proven.points)
        _LAST_SEEN.put(model, proven)
    features = (question.x - question.baseline) * gradient
    return attribution(
        question,
        features=features,
        target=column,
        score=_pick(logits, column),
        baseline_score=_pick(start, column),
        evaluations=proven.points,
        certificate=proven,
        method="apex",
    )


def _mean_gradient(question: Question, column: Tensor, points: int) -> tuple[Tensor, Certificate]:
    """∂G/∂δ by one pass and one backward pass, and the certificate of that pass."""
    rule = quadrature("gauss-legendre", points)
    shift = torch.zeros_like(question.x, requires_grad=True)
    scores, certificate = carry(question, Resolution(tuple(rule.nodes)), shift)
    weights = torch.tensor(rule.weights).to(scores)
    integral = weights @ scores[:, torch.arange(question.graphs, device=scores.device), column].sum(dim=1)
    (gradient,) = torch.autograd.grad(integral, shift)
    return gradient, certificate


def attribution(
    question: Question,
    *,
    features: Tensor,
    target: Tensor,
    score: Tensor,
    baseline_score: Tensor,
    evaluations: int,
    certificate: Certificate | None,
    method: str,
) -> Attribution:
    """Assemble the result, with its residual and condition number; refuse numbers that are none."""
    nodes = features.sum(dim=1)
    share, size = question.per_graph(nodes), question.per_graph(features.abs().sum(dim=1))
    values = (features, score, baseline_score)
    if not all(bool(torch.isfinite(v).all()) for v in values):
        advice = (
            "use float64: model.double() and data.x.double()"
            if features.dtype == torch.float32
            else "rescale"
        )
        raise NumericalError(f"the score or its gradient left the range of {features.dtype}; {advice}")
    return Attribution(
        features=features,
        nodes=nodes,
        target=target,
        score=score,
        baseline_score=baseline_score,
        residual=share - (score - baseline_score),
        evaluations=evaluations,
        exact=certificate is not None,
        certificate=certificate,
        condition=size / share.abs(),
        method=method,
    )


def _pick(logits: Tensor, column: Tensor) -> Tensor:
    return logits.gather(1, column.unsqueeze(1)).squeeze(1)
