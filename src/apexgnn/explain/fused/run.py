"""From a checked question about a PolyGIN to its attribution."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.explain.fused.fold import folded
from apexgnn.explain.fused.kernel import Path, mean_gradient
from apexgnn.explain.fused.pieces import Wiring, bytes_per_row, pieces, sorted_once
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
    with torch.inference_mode():
        sizes = torch.tensor([len(x)]) if batch is None else torch.bincount(batch, minlength=num_graphs)
        ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        layers = sorted_once(edge_index, len(x), edge_weight=edge_weight, eps=weights.eps, dtype=x.dtype)
        wiring = Wiring(layers, ptr, model.readout == "mean", x.dtype)
        space = Workspace.of_thread(x.dtype)
        bounds = ptr.tolist()
        row_bytes = bytes_per_row(weights, zero=baseline is None)
        for first, last in pieces(sizes.tolist(), row_bytes=row_bytes, memory=memory):
            rows, graphs = slice(bounds[first], bounds[last]), slice(first, last)
            if baseline is None:
                path = Path(None, x[rows])
            else:
                path = Path((x[rows] + baseline[rows]) / 2, (x[rows] - baseline[rows]) / 2)
            wanted = None if target is None else target[graphs]
            gradient, scores = mean_gradient(weights, wiring.piece(first, last, space), path, wanted, space)
            difference = x[rows] if baseline is None else x[rows] - baseline[rows]
            torch.mul(difference, gradient, out=features[rows])
            column[graphs], score[graphs], start[graphs] = scores.target, scores.end, scores.start
    return FusedResult(features, column, score, start)
