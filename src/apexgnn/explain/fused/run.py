"""From a checked question about a PolyGIN to its attribution, piece by piece."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from apexgnn.explain.fused.cones import Surroundings
from apexgnn.explain.fused.fold import Folded, folded
from apexgnn.explain.fused.kernel import Pass, Path
from apexgnn.explain.fused.operators import EachNode
from apexgnn.explain.fused.pieces import Plan, cut, layer_sums, readout_of
from apexgnn.explain.fused.workspace import Workspace
from apexgnn.nn.models import PolyGIN

MEMORY = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class FusedResult:
    """The attribution of G scores.

    Attributes:
        features: [R, F], signed shares; a row for every node, or for every row of `nodes`.
        target: [G], the explained column.
        score, baseline_score: [G], its value at the input and at the baseline.
        nodes, owner: [R], for several nodes of a node task: the node whose share a row is, and the number of the
            explained node that it is a share of. Nodes that are out of reach have no row; their shares are 0.
    """

    features: Tensor
    target: Tensor
    score: Tensor
    baseline_score: Tensor
    nodes: Tensor | None = None
    owner: Tensor | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """The folded model, how much of it to do at a time, the ends of the path (None is zero) and the graph."""

    weights: Folded
    plan: Plan
    mean: bool
    x: Tensor
    baseline: Tensor | None
    edge_index: Tensor
    edge_weight: Tensor | None

    def path(self, rows: Tensor | slice) -> tuple[Path, Tensor]:
        """The path of these rows, and x − x′."""
        x = self.x[rows]
        if self.baseline is None:
            return Path(None, x), x
        start = self.baseline[rows]
        return Path((x + start) / 2, (x - start) / 2), x - start


def fused_attribution(
    model: PolyGIN,
    x: Tensor,
    edge_index: Tensor,
    *,
    batch: Tensor | None = None,
    num_graphs: int = 1,
    baseline: Tensor | None = None,
    target: Tensor | None = None,
    index: int | Tensor | None = None,
    edge_weight: Tensor | None = None,
    memory: int = MEMORY,
) -> FusedResult:
    """Exact Aumann–Shapley attribution of a `fusable` PolyGIN. The arguments are taken to be in order.

    Args:
        batch: [N], the graph of every node; edges lie inside graphs.
        baseline: [N, F]; None for zero.
        target: [G], the column to explain; None for the predicted class.
        index: for a node task, the node whose score is explained, or several.
        memory: bytes that may be used beside the input and the result.

    >>> model = PolyGIN(2, 2, hidden_channels=4).double().eval()
    >>> x, edge_index = torch.rand(3, 2).double(), torch.tensor([[0, 1], [1, 2]])
    >>> result = fused_attribution(model, x, edge_index)
    >>> bool((result.features.sum() - (result.score - result.baseline_score)).abs() < 1e-14)
    True
    """
    if baseline is not None and not bool(baseline.any()):
        baseline = None
    weights = folded(model)
    plan = Plan.of(weights, zero=baseline is None, memory=memory)
    task = _Task(weights, plan, model.readout == "mean", x, baseline, edge_index, edge_weight)
    if index is None:
        if batch is None or bool((batch[1:] >= batch[:-1]).all()):
            return _explain_graphs(task, batch, num_graphs, target)
        return _explain_unsorted(task, batch, num_graphs, target)
    result = _explain_nodes(task, torch.as_tensor(index).view(-1), target)
    if isinstance(index, Tensor):
        return result
    features = torch.zeros_like(x)
    features[result.nodes] = result.features
    return FusedResult(features, result.target, result.score, result.baseline_score)


def _explain_graphs(task: _Task, batch: Tensor | None, num_graphs: int, target: Tensor | None) -> FusedResult:
    x, weights, plan = task.x, task.weights, task.plan
    features, column = torch.empty_like(x), torch.empty(num_graphs, dtype=torch.long)
    score, start = x.new_empty(num_graphs), x.new_empty(num_graphs)
    with torch.inference_mode():
        sizes = torch.tensor([len(x)]) if batch is None else torch.bincount(batch, minlength=num_graphs)
        ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        bounds, space = ptr.tolist(), Workspace.of_thread(x.dtype)
        layers = layer_sums(
            task.edge_index,
            len(x),
            sources=len(x),
            edge_weight=task.edge_weight,
            eps=weights.eps,
            dtype=x.dtype,
        )
        for first, last in plan.pieces(sizes.tolist()):
            low, high = bounds[first], bounds[last]
            plan.check([high - low] * len(layers), what=f"graph {first}")
            readout = readout_of(ptr[first : last + 1], mean=task.mean, space=space, dtype=x.dtype)
            path, difference = task.path(slice(low, high))
            work = Pass(weights, cut(layers, low, high), readout, path=path, space=space, block=plan.block)
            gradient, scores = work.mean_gradient(None if target is None else target[first:last])
            torch.mul(difference, gradient, out=features[low:high])
            column[first:last], score[first:last], start[first:last] = scores.target, scores.end, scores.start
    return FusedResult(features, column, score, start)


def _explain_unsorted(task: _Task, batch: Tensor, num_graphs: int, target: Tensor | None) -> FusedResult:
    """The nodes of every graph brought together, and their shares back to where they were."""
    order = batch.argsort(stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    together = replace(
        task,
        x=task.x[order],
        baseline=None if task.baseline is None else task.baseline[order],
        edge_index=place[task.edge_index],
    )
    result = _explain_graphs(together, batch[order], num_graphs, target)
    return replace(result, features=result.features[place])


def _explain_nodes(task: _Task, targets: Tensor, target: Tensor | None) -> FusedResult:
    """Cone by cone, as many at a time as fill a block with the rows of the first layer."""
    x, weights, plan, hops = task.x, task.weights, task.plan, len(task.weights.eps)
    surroundings = Surroundings.of(task.edge_index, len(x), targets=targets, hops=hops)
    space, parts = Workspace.of_thread(x.dtype), []
    first, count = 0, 1
    while first < len(targets):
        last = min(first + count, len(targets))
        cones = surroundings.cones(targets[first:last], hops=hops)
        plan.check(cones.sizes[-2::-1], what=f"the neighbourhood of node {int(targets[first])}")
        path, difference = task.path(cones.nodes)
        features = torch.empty_like(difference)
        with torch.inference_mode():
            layers = cones.layers(edge_weight=task.edge_weight, eps=weights.eps, dtype=x.dtype)
            work = Pass(weights, layers, EachNode(), path=path, space=space, block=plan.block)
            gradient, scores = work.mean_gradient(None if target is None else target[first:last])
            torch.mul(difference, gradient, out=features)
        values = (scores.target.clone(), scores.end.clone(), scores.start.clone())
        parts.append(FusedResult(features, *values, cones.nodes, cones.owner + first))
        count = max(1, min(2 * count, plan.block * (last - first) // cones.sizes[-2]))
        first = last
    names = (field.name for field in fields(FusedResult))
    return FusedResult(*(torch.cat([getattr(part, name) for part in parts]) for name in names))
