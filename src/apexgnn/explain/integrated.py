"""Integrated Gradients by a quadrature rule, for any differentiable model.

    φ ≈ (X − X′) ⊙ Σ_k w_k ∇f(X′ + τ_k(X − X′))

The sum is an approximation, and its completeness residual Σφ − (f(X) − f(X′)) is the quadrature error of df/dτ.
Points are evaluated side by side, as copies of the graph in one disjoint batch, as many as the memory allows.
A model that does not keep the graphs of a batch apart is found out by its score of one copy alone, and gets them
one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from apexgnn.attribution import Attribution
from apexgnn.errors import InputError
from apexgnn.explain.attribute import attribution
from apexgnn.explain.certify import BELIEVABLE
from apexgnn.explain.question import Call, Model, Question, Target, ask, check_memory, resolve_target
from apexgnn.explain.remembered import Remembered
from apexgnn.explain.shares import Shares, averaged, pick
from apexgnn.explain.untouched import untouched
from apexgnn.path.quadrature import Rule, quadrature

_BYTES_PER_ROW = Remembered[float]()


def integrated_gradients(
    model: Model,
    data: Data,
    *,
    rule: str = "gauss-legendre",
    steps: int = 50,
    target: Target = None,
    baseline: Any = None,
    index: int | Tensor | None = None,
    call: Call | None = None,
    memory: int = 2**30,
) -> Attribution:
    """Approximate attribution of any differentiable model; `exact` is False and the residual says how good it is.

    Args:
        model, data, target, baseline, index, call: as for `apexgnn.attribute`.
        rule: "left", "right", "midpoint", "trapezoid", "simpson" or "gauss-legendre".
        steps: points, or intervals for trapezoid and simpson (which then need one gradient more).
        memory: bound in bytes on what is kept for the backward passes of points evaluated together.

    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> result = integrated_gradients(GIN(2, 2, hidden_channels=4).eval(), data, rule="simpson", steps=10)
    >>> result.exact, result.evaluations
    (False, 11)
    """
    points = quadrature(rule, steps)
    check_memory(memory)
    question = ask(model, data, baseline=baseline, index=index, call=call)
    with untouched(model):
        dice = torch.get_rng_state()
        shares = averaged([_approximate(one, points, target, memory) for one in question.each()])
        if not torch.equal(dice, torch.get_rng_state()):
            expected = "eval mode, in which scores are not random"
            raise InputError("model", got="random numbers", expected=expected, fix="model.eval()")
    evaluations = len(points) * len(question.baselines)
    return attribution(question, shares, evaluations=evaluations, method=f"integrated gradients, {rule}")


def _approximate(question: Question, points: Rule, target: Target, memory: int) -> Shares:
    logits, start = question.logits(question.x), question.logits(question.baseline)
    column = resolve_target(target, logits)
    gradient = torch.zeros_like(question.x)
    weights = torch.tensor(points.weights).to(gradient)
    for chunk in _chunks(question, len(points), memory):
        taus = torch.tensor(points.nodes[chunk]).to(gradient)
        with _measured(question, len(taus) * question.x.size(0)):
            gradients = _gradients(question, column, taus)
        gradient += torch.einsum("k,knf->nf", weights[chunk], gradients)
    features = (question.x - question.baseline) * gradient
    return Shares(features, column, pick(logits, column), pick(start, column))


def _gradients(question: Question, column: Tensor, taus: Tensor) -> Tensor:
    """∇f at each τ, [K, N, F]: from one pass over K copies of the graph, if the model keeps graphs apart."""
    x = question.baseline + taus.view(-1, 1, 1) * (question.x - question.baseline)
    x.requires_grad_()
    logits = _side_by_side(question, x) if len(x) > 1 else question.alone(x[0])
    if logits is None:
        return torch.cat([_gradients(question, column, tau) for tau in taus.split(1)])
    score = logits[:, torch.arange(question.graphs, device=x.device), column].sum()
    if not score.requires_grad:
        raise InputError("model", got="a score without gradient", expected="a differentiable function of x")
    (gradient,) = torch.autograd.grad(score, x)
    return gradient


def _side_by_side(question: Question, x: Tensor) -> Tensor | None:
    """The scores [K, G, C] of K copies in one batch; None if the model lets one see the others."""
    data = copied(question.data, len(x))
    data.x = x.reshape(-1, x.size(-1)).clone()
    with torch.no_grad():
        alone = question.alone(x[-1])
    output = question.call(question.model, data)
    rows = x.size(1) if question.index is not None else question.graphs
    if output.dim() == 0 or output.size(0) != len(x) * rows:
        return None
    logits = question.rows(output.reshape(len(x), rows, *output.shape[1:]))
    if logits.shape[1:] != alone.shape[1:]:
        return None
    apart = bool(((logits[-1] - alone[0]).abs() <= BELIEVABLE * alone.abs().max()).all())
    return logits if apart else None


def copied(data: Data, copies: int) -> Data:
    """The graph side by side with itself, joined by the rules that PyTorch Geometric joins batches by.

    >>> copied(Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]])), 2).edge_index.tolist()
    [[0, 2], [1, 3]]
    """
    joined = Data()
    nodes = data.x.size(0)
    graphs = int(data.batch.max()) + 1 if data.batch is not None else 1
    step = {"edge_index": nodes, "batch": graphs}
    for key, value in data.to_dict().items():
        if key == "ptr":
            continue
        if not isinstance(value, Tensor) or value.dim() == 0:
            joined[key] = value
            continue
        dim = data.__cat_dim__(key, value)
        shift = step.get(key, data.__inc__(key, value))
        joined[key] = torch.cat(
            [value + k * shift if isinstance(shift, Tensor) or shift else value for k in range(copies)],
            dim or 0,
        )
    if data.batch is None:
        joined.batch = torch.arange(copies, device=data.x.device).repeat_interleave(nodes)
    return joined


def _chunks(question: Question, points: int, memory: int) -> Iterator[slice]:
    """Ranges of points whose saved activations fit the memory together.

    What a row costs is remembered for each model; the first point that a model sees is taken alone and measured.
    """
    start = 0
    while start < points:
        row = _BYTES_PER_ROW.get(question.model)
        together = 1 if row is None else max(1, int(memory / (row * question.x.size(0))))
        yield slice(start, min(start + together, points))
        start += together


@contextmanager
def _measured(question: Question, rows: int) -> Iterator[None]:
    """Remember how many bytes autograd keeps for each row of the model's input."""
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    if _BYTES_PER_ROW.get(question.model) is not None:
        yield
        return
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield
    _BYTES_PER_ROW.put(question.model, max(1.0, sum(saved.values()) / rows))
