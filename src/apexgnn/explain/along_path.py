"""The general engine: one pass of a PathTensor through the model, and one backward pass.

The first time a model is seen, a pass at the single point τ = 1 finds the degree and the memory that a row needs.
Later that is only a guess, which every pass proves again: if the degree comes out different, the pass is repeated.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from apexgnn.attribution import Certificate
from apexgnn.errors import MemoryBudgetError, NotPolynomialError
from apexgnn.explain.certify import at_the_end
from apexgnn.explain.passes import carry
from apexgnn.explain.question import Question, Target, resolve_target
from apexgnn.explain.remembered import Remembered
from apexgnn.explain.shares import Shares, pick
from apexgnn.path.quadrature import quadrature
from apexgnn.path.resolution import Resolution


@dataclass(frozen=True, slots=True)
class _Seen:
    certificate: Certificate
    bytes_per_row: float


_SEEN = Remembered[_Seen]()


def along_path(question: Question, target: Target, *, memory: int) -> Shares:
    """Exact shares for any certified model."""
    seen = _SEEN.get(question.model) or _look(question)
    logits, start = question.logits(question.x), question.logits(question.baseline)
    column = resolve_target(target, logits)
    gradient, certificate = _in_parts(question, column, seen, memory)
    if certificate.points != seen.certificate.points:
        seen = _look(question)
        gradient, certificate = _in_parts(question, column, seen, memory)
    if certificate.points != seen.certificate.points:
        why = "runs through other operations at every call, so that no degree can be certified"
        raise NotPolynomialError("the code", module="", reason=why)
    return Shares(
        features=(question.x - question.baseline) * gradient,
        target=column,
        score=pick(logits, column),
        baseline_score=pick(start, column),
        certificate=certificate,
    )


def _look(question: Question) -> _Seen:
    carried = at_the_end(question)
    row = carried.memory(carried.certificate.points) / question.x.size(0)
    seen = _Seen(carried.certificate, row)
    _SEEN.put(question.model, seen)
    return seen


def _in_parts(question: Question, column: Tensor, seen: _Seen, memory: int) -> tuple[Tensor, Certificate]:
    """Mean gradients [N, F], from as many graphs at a time as fit the memory, and the certificate of the highest."""
    rows = max(1, int(memory / seen.bytes_per_row))
    if question.x.size(0) <= rows:
        return _mean_gradient(question, column, seen.certificate.points)
    gradient, highest = torch.empty_like(question.x), None
    for part, mask, graphs in _parts(question, rows, seen.bytes_per_row):
        gradient[mask], certificate = _mean_gradient(part, column[graphs], seen.certificate.points)
        if certificate.points != seen.certificate.points:
            return gradient, certificate
        if highest is None or certificate.degree > highest.degree:
            highest = certificate
    assert highest is not None
    return gradient, highest


def _parts(question: Question, rows: int, row_bytes: float) -> Iterator[tuple[Question, Tensor, slice]]:
    sizes = torch.bincount(question.owner, minlength=question.graphs).tolist()
    if max(sizes) > rows:
        estimate, budget = max(sizes) * row_bytes / 2**20, rows * row_bytes / 2**20
        raise MemoryBudgetError(
            f"a graph of {max(sizes)} nodes needs about {estimate:,.0f} MiB along the path, and memory= allows "
            f"{budget:,.0f} MiB. To fix: raise memory=, or explain a node's own neighbourhood"
        )
    first = 0
    while first < question.graphs:
        last, taken = first, 0
        while last < question.graphs and taken + sizes[last] <= rows:
            taken += sizes[last]
            last += 1
        mask = (question.owner >= first) & (question.owner < last)
        yield _part(question, mask, slice(first, last)), mask, slice(first, last)
        first = last


def _part(question: Question, mask: Tensor, graphs: slice) -> Question:
    """The same question about some graphs of the batch."""
    owner = question.owner[mask] - graphs.start
    index = None if question.index is None else (mask.cumsum(0) - 1)[question.index[graphs]]
    return replace(
        question,
        data=_cut(question.data, mask, owner, question.graphs, graphs),
        x=question.x[mask],
        baselines=(question.baseline[mask],),
        owner=owner,
        graphs=graphs.stop - graphs.start,
        index=index,
    )


def _cut(whole: Data, mask: Tensor, owner: Tensor, count: int, graphs: slice) -> Data:
    """Nodes and edges by the mask, what there is one of for each of `count` graphs by the range of graphs."""
    part = copy.copy(whole).subgraph(mask)
    for key, value in whole.to_dict().items():
        per_graph = isinstance(value, Tensor) and value.dim() > 0 and value.size(0) == count
        if per_graph and not whole.is_node_attr(key) and not whole.is_edge_attr(key):
            part[key] = value[graphs]
    part.batch = owner
    if isinstance(whole, Batch):
        part._num_graphs = graphs.stop - graphs.start
        part.ptr = torch.nn.functional.pad(torch.bincount(owner).cumsum(0), (1, 0))
    return part


def _mean_gradient(question: Question, column: Tensor, points: int) -> tuple[Tensor, Certificate]:
    """∂G/∂δ by one pass and one backward pass, and the certificate of that pass."""
    rule = quadrature("gauss-legendre", points)
    shift = torch.zeros_like(question.x, requires_grad=True)
    carried = carry(question, Resolution(tuple(rule.nodes)), shift)
    weights = torch.tensor(rule.weights).to(carried.values)
    scores = carried.values[:, torch.arange(question.graphs, device=column.device), column]
    (gradient,) = torch.autograd.grad(weights @ scores.sum(dim=1), shift)
    return gradient, carried.certificate
