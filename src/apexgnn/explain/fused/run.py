"""From a checked question about a PolyGIN to its attribution."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.explain.fused.fold import folded
from apexgnn.explain.fused.kernel import Pass, Path
from apexgnn.explain.fused.pieces import Plan, cut, layer_sums, readout_of
from apexgnn.explain.fused.workspace import Workspace
from apexgnn.nn.models import PolyGIN

MEMORY = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class FusedResult:
    """Signed shares [N, F]; per graph the explained column and its score at the input and at the baseline."""

    features: Tensor
    target: Tensor
    score: Tensor
    baseline_score: Tensor


def fused_attribution(
    model: PolyGIN,
    x: Tensor,
    edge_index: Tensor,
    *,
    batch: Tensor | None = None,
    num_graphs: int = 1,
    baseline: Tensor | None = None,
    target: Tensor | None = None,
    edge_weight: Tensor | None = None,
    memory: int = MEMORY,
) -> FusedResult:
    """Exact Aumann–Shapley attribution of a PolyGIN for graph tasks; the arguments have been checked."""
    weights = folded(model)
    if baseline is not None and not bool(baseline.any()):
        baseline = None
    features = torch.empty_like(x)
    column = torch.empty(num_graphs, dtype=torch.long)
    score, start = x.new_empty(num_graphs), x.new_empty(num_graphs)
    plan = Plan.of(weights, zero=baseline is None, memory=memory)
    with torch.inference_mode():
        sizes = torch.tensor([len(x)]) if batch is None else torch.bincount(batch, minlength=num_graphs)
        ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        layers = layer_sums(edge_index, len(x), edge_weight=edge_weight, eps=weights.eps, dtype=x.dtype)
        space = Workspace.of_thread(x.dtype)
        bounds = ptr.tolist()
        for first, last in plan.pieces(sizes.tolist()):
            low, high = bounds[first], bounds[last]
            rows, graphs = slice(low, high), slice(first, last)
            plan.check(high - low, what=f"graph {first}", memory=memory)
            if baseline is None:
                difference = x[rows]
                path = Path(None, difference)
            else:
                difference = x[rows] - baseline[rows]
                path = Path((x[rows] + baseline[rows]) / 2, difference / 2)
            readout = readout_of(
                ptr[first : last + 1], mean=model.readout == "mean", space=space, dtype=x.dtype
            )
            work = Pass(weights, cut(layers, low, high), readout, path=path, space=space, block=plan.block)
            gradient, scores = work.mean_gradient(None if target is None else target[graphs])
            torch.mul(difference, gradient, out=features[rows])
            column[graphs], score[graphs], start[graphs] = scores.target, scores.end, scores.start
    return FusedResult(features, column, score, start)
