"""Does a PolyGIN's layer keep apart what its aggregation keeps apart? Proposition 2, checked on data.

A layer's transformation P(a) = W₂ σ(s ⊙ W₁a), σ(z) = z + θ ⊙ z², is injective on the set A of aggregated
rows if

    W₁ is injective on A,   every s_j ≠ 0,   max_j |θ_j| < 1/(2B),   W₂ is injective on σ(s ⊙ W₁A),

where B bounds |s ⊙ W₁a| over A: each coordinate t + θ_j t² then rises strictly on [−B, B]. On a data set A
is finite, so all four can be computed. They are sufficient, not necessary; with an injective aggregation and
readout besides, PolyGIN is as discriminative as the 1-WL test, which is also its upper bound.

A linear map is tested on A itself (do distinct rows stay distinct?) and on the differences of A (does it
keep their rank?); the second is the stronger, and holds for unseen rows of the same span too. All is done in
float64, where rows count as equal if no column separates them by more than `RESOLUTION` of its largest entry.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from apexgnn.aggregation import aggregate
from apexgnn.errors import GraphError, InputError
from apexgnn.nn.layers import PolyGINConv
from apexgnn.nn.models import PolyGIN

RESOLUTION = 1e-10


@dataclass(frozen=True, slots=True)
class LayerInjectivity:
    """Proposition 2 for one layer.

    Attributes:
        layer: the layer's path in the model.
        bound: B, the largest |s ⊙ W₁a| over the data.
        max_theta: max|θ|.
        zero_scales: how many s_j are zero.
        distinct: distinct rows of A, then what W₁, σ and W₂ leave of them.
        rank1: rank of the differences of A, and what W₁ leaves of it.
        rank2: rank of the differences of W₂'s input, and what W₂ leaves of it.
    """

    layer: str
    bound: float
    max_theta: float
    zero_scales: int
    distinct: tuple[int, int, int, int]
    rank1: tuple[int, int]
    rank2: tuple[int, int]

    @property
    def limit(self) -> float:
        """1/(2B)."""
        return 1 / (2 * self.bound) if self.bound else float("inf")

    @property
    def margin(self) -> float:
        """1/(2B) − max|θ|: positive where the condition on θ holds."""
        return self.limit - self.max_theta

    @property
    def obstacles(self) -> tuple[str, ...]:
        """The conditions of Proposition 2 that fail, in words."""
        rows, after_w1, after_sigma, after_w2 = self.distinct
        found = []
        if after_w1 < rows:
            found.append(f"W₁ merges {rows} distinct rows into {after_w1}")
        if self.zero_scales:
            found.append(f"{self.zero_scales} of the scales s are zero")
        if self.margin <= 0:
            found.append(f"max|θ| = {self.max_theta:.3g} is not below 1/(2B) = {self.limit:.3g}")
        if after_w2 < after_sigma:
            found.append(f"W₂ merges {after_sigma} distinct rows into {after_w2}")
        return tuple(found)

    @property
    def holds(self) -> bool:
        """Whether all conditions of Proposition 2 hold on the data."""
        return not self.obstacles

    @property
    def injective(self) -> bool:
        """Whether the layer does keep all rows of the data apart, by Proposition 2 or by good fortune."""
        return self.distinct[-1] == self.distinct[0]


@dataclass(frozen=True, slots=True)
class InjectivityReport:
    """Proposition 2 for every layer; prints as a table."""

    layers: tuple[LayerInjectivity, ...]

    @property
    def holds(self) -> bool:
        """Whether the conditions hold in every layer."""
        return all(layer.holds for layer in self.layers)

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [
            ("layer", "distinct rows: in, W₁, σ, W₂", "rank W₁", "rank W₂", "B", "max|θ|", "margin", "holds")
        ]
        for layer in self.layers:
            ranks = [f"{after} of {before}" for before, after in (layer.rank1, layer.rank2)]
            numbers = [f"{value:.3g}" for value in (layer.bound, layer.max_theta, layer.margin)]
            verdict = "yes" if layer.holds else "no"
            rows.append((layer.layer, " → ".join(map(str, layer.distinct)), *ranks, *numbers, verdict))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "   ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        notes = [f"{layer.layer}: {text}" for layer in self.layers for text in layer.obstacles]
        verdict = "hold in every layer" if self.holds else "do not hold"
        return "\n".join([f"The conditions of Proposition 2 {verdict}.", *lines, *notes])


def injectivity_report(model: PolyGIN, data: Any) -> InjectivityReport:
    """Check the conditions of Proposition 2, layer by layer, on a graph or a batch of graphs.

    Args:
        model: a PolyGIN; it is not changed.
        data: a PyG Data or Batch with `x`, `edge_index` and, where used, `edge_weight`.

    >>> from torch_geometric.data import Data
    >>> model = PolyGIN(2, 2, hidden_channels=4, num_layers=1)
    >>> with torch.no_grad():
    ...     _ = model.convs[0].lin2.weight.zero_()
    >>> path = Data(x=torch.eye(3)[:, :2], edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> report = injectivity_report(model, path)
    >>> report.holds, report.layers[0].obstacles
    (False, ('W₂ merges 2 distinct rows into 1',))
    """
    if not isinstance(model, PolyGIN):
        raise InputError("model", got=f"a {type(model).__name__}", expected="a PolyGIN")
    if model.config["residual"]:
        raise InputError("model", got="residual layers", expected="layers of Proposition 2, without residual")
    x, edge_weight = data.x, data.get("edge_weight")
    width = model.config["in_channels"]
    if x is None or x.dim() != 2 or x.size(1) != width or not x.size(0):
        got = "none" if x is None else f"shape {tuple(x.shape)}"
        raise GraphError("data.x", got=got, expected=f"[N, {width}] with N ≥ 1")
    _check_numbers(model, data)
    h = x.double()
    edge_weight = None if edge_weight is None else edge_weight.double()
    layers = []
    with torch.no_grad():
        for index, conv in enumerate(copy.deepcopy(model.convs).double()):
            assert isinstance(conv, PolyGINConv)
            a = (1 + conv.eps) * h + aggregate(h, data.edge_index, edge_weight)
            layers.append(_layer(f"convs.{index}", conv, a))
            h = conv.lin2(conv.act(conv.norm(conv.lin1(a))))
    return InjectivityReport(tuple(layers))


def _check_numbers(model: PolyGIN, data: Any) -> None:
    """Finite features, edge weights and parameters, and edges between nodes that exist."""
    edges, weight = data.edge_index, data.get("edge_weight")
    if not isinstance(edges, Tensor) or edges.dim() != 2 or edges.size(0) != 2:
        raise GraphError("data.edge_index", got=type(edges).__name__, expected="a tensor [2, E]")
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < data.x.size(0):
        got = f"nodes {int(edges.min())} … {int(edges.max())}"
        raise GraphError("data.edge_index", got=got, expected=f"nodes 0 … {data.x.size(0) - 1}")
    if weight is not None and weight.shape != edges.shape[1:]:
        raise GraphError("data.edge_weight", got=f"shape {tuple(weight.shape)}", expected="one for each edge")
    for where, value in (("data.x", data.x), ("data.edge_weight", weight)):
        if value is not None and not bool(torch.isfinite(value).all()):
            raise GraphError(where, got="NaN or infinite values", expected="finite values")
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise InputError("model", got="NaN or infinite weights", expected="finite weights")


def distinct_rows(rows: Tensor) -> Tensor:
    """One row of each class of equal rows, in order of first appearance.

    Columns are taken one after another; each cuts every class where its sorted values leave a gap.

    >>> rows = torch.tensor([[0.0, 2.0], [0.0, 3.0], [1e-99, 2.0], [5.0, 2.0]])
    >>> distinct_rows(rows).tolist()
    [[0.0, 2.0], [0.0, 3.0], [5.0, 2.0]]
    """
    classes = torch.zeros(rows.size(0), dtype=torch.long)
    for column in rows.cpu().unbind(dim=1):
        if int(classes.max()) == rows.size(0) - 1:
            break
        order = column.argsort(stable=True)
        order = order[classes[order].argsort(stable=True)]
        gap = column[order].diff() > RESOLUTION * column.abs().max()
        cut = gap | (classes[order].diff() != 0)
        classes[order[1:]] = cut.cumsum(0)
        classes[order[:1]] = 0
    first = torch.full((int(classes.max()) + 1,), rows.size(0)).scatter_reduce(
        0, classes, torch.arange(rows.size(0)), "amin"
    )
    return rows[first.sort().values]


def _layer(name: str, conv: PolyGINConv, aggregated: Tensor) -> LayerInjectivity:
    a = distinct_rows(aggregated)
    projected = conv.lin1(a)
    normed = conv.norm(projected)
    u = distinct_rows(conv.act(normed))
    counts = (a.size(0), _count(projected), u.size(0), _count(conv.lin2(u)))
    return LayerInjectivity(
        layer=name,
        bound=float(normed.abs().max()),
        max_theta=float(conv.act.theta.abs().max()),
        zero_scales=int((conv.norm.scale == 0).sum()),
        distinct=counts,
        rank1=_ranks(a, conv.lin1.weight),
        rank2=_ranks(u, conv.lin2.weight),
    )


def _count(rows: Tensor) -> int:
    return distinct_rows(rows).size(0)


def _ranks(rows: Tensor, weight: Tensor) -> tuple[int, int]:
    """Rank of the rows' differences, before and after the linear map."""
    differences = rows - rows[:1]
    before, after = (
        int(torch.linalg.matrix_rank(m, rtol=RESOLUTION)) for m in (differences, differences @ weight.T)
    )
    return before, after
