"""The models' own functions on a quotient batch: the same parameters, fewer and smaller matrix products.

Sums over neighbours commute with linear maps, so W₁ of the next layer is applied *before* the sum, to the fewer
rows of the level below, and the last W₂ of PolyGIN after the readout. Between two non-linearities of PolyGIN
there are only linear maps, W₁⁽ˡ⁺¹⁾ A W₂⁽ˡ⁾: with n rows and width h they cost 2nh² one after the other, and
h³ + nh² multiplied first; the cheaper is taken. Gradients come from autograd, for the model's own parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, relu

from apexgnn.errors import InputError
from apexgnn.nn import GIN, PolyGIN, PolyGINConv
from apexgnn.training.quotient import QuotientBatch, Sums, gather


def logits(model: PolyGIN | GIN, batch: QuotientBatch) -> Tensor:
    """What `model(x, edge_index, batch)` gives for the graphs (or nodes) of this batch, up to rounding.

    >>> import torch
    >>> from torch_geometric.data import Data
    >>> from apexgnn.data.packed import PackedGraphs
    >>> from apexgnn.training.quotient import Quotient
    >>> edge = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0]))
    >>> model = PolyGIN(2, 3, hidden_channels=4).eval()
    >>> fast = logits(model, Quotient.of(PackedGraphs.pack([edge])).batch(torch.tensor([0])))
    >>> torch.allclose(fast, model(edge.x, edge.edge_index), atol=1e-5)
    True
    """
    eps = float(poly_layers(model)[0].eps) if isinstance(model, PolyGIN) else model.eps
    if eps != 0.0:
        raise InputError("model", got="ε ≠ 0", expected="ε = 0, fixed, as in the presets")
    rows = _poly(model, batch) if isinstance(model, PolyGIN) else _relu(model, batch)
    scores: Tensor = model.head(rows)
    return scores


def poly_layers(model: PolyGIN) -> list[PolyGINConv]:
    """The message-passing layers, first to last.

    >>> len(poly_layers(PolyGIN(2, 2, hidden_channels=3)))
    3
    """
    return [cast(PolyGINConv, conv) for conv in model.convs]


def relu_layers(model: GIN) -> list[tuple[nn.Linear, nn.Linear]]:
    """W₁ and W₂ of every layer of a GIN.

    >>> relu_layers(GIN(2, 2, hidden_channels=3))[0][0].in_features
    2
    """
    pairs = [cast(nn.Sequential, conv) for conv in model.convs]
    return [(cast(nn.Linear, pair[0]), cast(nn.Linear, pair[2])) for pair in pairs]


def _poly(model: PolyGIN, batch: QuotientBatch) -> Tensor:
    first, *rest = poly_layers(model)
    rows = Hidden(first.act(first.norm(first.lin1(batch.features))), first.lin2)
    for level, conv in enumerate(rest):
        z, carried = onward(rows, conv, batch, level)
        rows = Hidden(conv.act(conv.norm(z)), conv.lin2, carried)
    return read_out(model, rows, batch.outputs)


def _relu(model: GIN, batch: QuotientBatch) -> Tensor:
    (into, out), *rest = relu_layers(model)
    h = relu(out(relu(into(batch.features))))
    for (into, out), sums in zip(rest, batch.levels, strict=True):
        h = relu(out(relu(gather(linear(h, into.weight), sums) + into.bias)))
    return pooled(model, h, batch.outputs)


class Hidden(NamedTuple):
    """The rows W₂u (+ carried) after a layer of PolyGIN, W₂ not yet applied."""

    u: Tensor
    lin2: nn.Linear
    carried: Tensor | None = None

    def rows(self) -> Tensor:
        """The rows themselves."""
        h: Tensor = self.lin2(self.u)
        return h if self.carried is None else h + self.carried


def onward(
    below: Hidden, conv: PolyGINConv, batch: QuotientBatch, level: int
) -> tuple[Tensor, Tensor | None]:
    """W₁a + b₁ of the layer above, and what its residual will add."""
    sums = batch.levels[level]
    if not conv.residual:
        return gather(transfer(below.u, below.lin2, conv.lin1), sums) + conv.lin1.bias, None
    h = below.rows()
    z = gather(linear(h, conv.lin1.weight), sums) + conv.lin1.bias
    return z, h.index_select(0, batch.own[level])


def read_out(model: PolyGIN, top: Hidden, outputs: Sums) -> Tensor:
    """What enters the head; W₂ is applied after a mean, which has fewer rows."""
    if model.task == "graph" and model.readout == "sum":
        return pooled(model, top.rows(), outputs)
    carried = None if top.carried is None else pooled(model, top.carried, outputs)
    return Hidden(pooled(model, top.u, outputs), top.lin2, carried).rows()


def transfer(h: Tensor, first: nn.Linear, then: nn.Linear) -> Tensor:
    """then(first(h)) without the bias of `then`, in the cheaper order."""
    if h.size(0) > first.out_features:
        return linear(h, then.weight @ first.weight, then.weight @ first.bias)
    return linear(first(h), then.weight)


def pooled(model: PolyGIN | GIN, h: Tensor, outputs: Sums) -> Tensor:
    """The readout: rows of level L to rows per output."""
    total = gather(h, outputs)
    return total / outputs.count() if model.task == "graph" and model.readout == "mean" else total


@contextmanager
def products(kind: str) -> Iterator[None]:
    """Matrix products with factors rounded to "bfloat16" (sums stay float32), or "float32" as they are.

    >>> with products("bfloat16"):
    ...     torch.get_float32_matmul_precision()
    'medium'
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if kind == "bfloat16" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
