"""Exact Aumann–Shapley attribution.

With γ(τ) = X′ + τ(X − X′) and G(δ) = ∫₀¹ f(γ(τ) + δ) dτ,

    φ = (X − X′) ⊙ ∫₀¹ ∇f(γ(τ)) dτ = (X − X′) ⊙ ∂G/∂δ |_{δ=0},      Σφ = f(X) − f(X′).

If f has degree D along the path, ∇f has degree D − 1 there, and m = ⌈D/2⌉ Gauss–Legendre points integrate it
without error, as D − 1 ≤ 2m − 1. D is not declared but certified, by a polynomial that passes through the model's
own code. A PolyGIN in eval mode takes a kernel of its own, which gives the same result for less.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from apexgnn.attribution import Attribution
from apexgnn.errors import NumericalError
from apexgnn.explain.certify import BELIEVABLE
from apexgnn.explain.engines import exact_shares
from apexgnn.explain.question import Call, Model, Question, Target, ask, check_memory
from apexgnn.explain.shares import Shares, averaged


def attribute(
    model: Model,
    data: Data,
    *,
    target: Target = None,
    baseline: Any = None,
    index: int | Tensor | None = None,
    call: Call | None = None,
    memory: int = 2**32,
) -> Attribution:
    """The exact signed share of the score for every node and feature, or a refusal.

    Args:
        model: polynomial in its node features; called as PyTorch Geometric calls its models.
        data: a `Data` or `Batch`; a batch is explained in one pass.
        target: the output column, an int or one per graph; None explains the predicted class.
        baseline: where the path starts: None for zero, a number, [F] or [N, F]; or a distribution to average over,
            as a list of these, "mean", "permutation" or `Permutation(draws, seed)`.
        index: the node to explain, for a node task; one in each graph of a batch, if there are several.
        call: `call(model, data)` for models with another signature.
        memory: bound in bytes; a batch that needs more is taken in parts, and a graph that does is refused.

    Raises:
        NotPolynomialError: if there is no certificate; nothing is ever approximated.

    >>> from apexgnn.nn import PolyGIN
    >>> _ = torch.manual_seed(0)
    >>> data = Data(x=torch.rand(3, 2).double(), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> result = attribute(PolyGIN(2, 2, hidden_channels=4).double().eval(), data)
    >>> result.features.shape, result.exact, result.evaluations, bool(result.residual.abs() < 1e-15)
    (torch.Size([3, 2]), True, 8, True)
    """
    check_memory(memory)
    question = ask(model, data, baseline=baseline, index=index, call=call)
    shares = averaged([exact_shares(one, target, memory=memory) for one in question.each()])
    assert shares.certificate is not None
    evaluations = shares.certificate.points * len(question.baselines)
    return attribution(question, shares, evaluations=evaluations, method="apex")


def attribution(question: Question, shares: Shares, *, evaluations: int, method: str) -> Attribution:
    """Assemble the result, with its residual and condition number; refuse numbers that cannot be right."""
    features = shares.features
    nodes = features.sum(dim=1)
    share, size = question.per_graph(nodes), question.per_graph(features.abs().sum(dim=1))
    if not all(bool(torch.isfinite(v).all()) for v in (size, shares.score, shares.baseline_score)):
        advice = (
            "use float64: model.double() and data.x.double()"
            if features.dtype == torch.float32
            else "rescale"
        )
        raise NumericalError(f"the score or its shares left the range of {features.dtype}; {advice}")
    residual = share - (shares.score - shares.baseline_score)
    if shares.certificate is not None:
        _check_completeness(residual, shares.score.abs() + shares.baseline_score.abs() + size, features.dtype)
    return Attribution(
        features=features,
        nodes=nodes,
        target=shares.target,
        score=shares.score,
        baseline_score=shares.baseline_score,
        residual=residual,
        evaluations=evaluations,
        exact=shares.certificate is not None,
        certificate=shares.certificate,
        condition=size / share.abs(),
        method=method,
    )


def _check_completeness(residual: Tensor, scale: Tensor, dtype: torch.dtype) -> None:
    """A residual that rounding does not explain contradicts the certificate: nothing is returned then."""
    worst = float((residual.abs() / scale).nan_to_num().max())
    if worst > BELIEVABLE:
        raise NumericalError(
            f"completeness fails by {worst:.1e} of the scale. Rounding in {dtype} explains that only where far "
            "larger terms cancel inside the model: try float64. Otherwise the model computes something else at "
            "every call, as with random numbers of its own, or one graph of a batch sees another"
        )
