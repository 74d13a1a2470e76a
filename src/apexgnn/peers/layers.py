"""A model's message-passing layers, and a model in which messages can be masked from outside.

PyTorch Geometric's explainers work on `MessagePassing` modules: they multiply what goes along an edge, and read
what comes out of the last layer. Our own layers are plain functions of (x, edge_index, edge_weight); their twin

    SumConv:  h_v = rows((1 + ε)·s_v·x_v + Σ_{u→v} w_uv·x_u)  [+ s_v·x_v in a residual layer]

is a `MessagePassing` module around the same weights, with the self-term's own mask s (one, unless it is set).
"""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor, nn
from torch_geometric.nn import GINConv, MessagePassing

from apexgnn.errors import InputError
from apexgnn.nn import GIN, PolyGIN
from apexgnn.nn.layers import PolyGINConv
from apexgnn.nn.models import readout


class SumConv(MessagePassing):
    """The twin of one layer: a weighted sum over neighbours and the node itself, then a network on each row.

    >>> import torch
    >>> conv = SumConv(nn.Identity(), 0.0)
    >>> conv(torch.tensor([[1.0], [10.0]]), torch.tensor([[0], [1]])).flatten().tolist()
    [1.0, 11.0]
    """

    def __init__(self, rows: nn.Module, eps: Tensor | float, *, residual: bool = False) -> None:
        super().__init__(aggr="add")
        self.rows, self.eps, self.residual = rows, eps, residual
        self.self_mask: Tensor | None = None

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Rows [N, in] to rows [N, out]."""
        neighbours = self.propagate(edge_index, x=x, edge_weight=edge_weight)
        own = x if self.self_mask is None else self.self_mask.unsqueeze(-1) * x
        return self.finished((1 + self.eps) * own + neighbours, own)

    def finished(self, total: Tensor, own: Tensor) -> Tensor:
        """Rows from their weighted sums and from what they pass to themselves."""
        h: Tensor = self.rows(total)
        return h + own if self.residual else h

    def message(self, x_j: Tensor, edge_weight: Tensor | None) -> Tensor:
        """What goes along an edge."""
        return x_j if edge_weight is None else edge_weight.unsqueeze(-1) * x_j


class Twin(nn.Module):
    """A GIN or PolyGIN of ours with `MessagePassing` layers around the same weights.

    >>> import torch
    >>> model = GIN(2, 2, hidden_channels=4).eval()
    >>> x, edge_index = torch.rand(3, 2), torch.tensor([[0, 1], [1, 2]])
    >>> torch.allclose(Twin(model)(x, edge_index), model(x, edge_index), atol=1e-6)
    True
    """

    def __init__(self, model: GIN | PolyGIN) -> None:
        super().__init__()
        eps = model.eps if isinstance(model, GIN) else 0.0
        self.convs = nn.ModuleList(_sum_conv(conv, eps) for conv in model.convs)
        self.head, self.task, self.readout = model.head, model.task, model.readout
        self.train(model.training)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Logits, as the model's own."""
        for conv in self.convs:
            x = conv(x, edge_index, edge_weight)
        if self.task == "graph":
            x = readout(x, batch, self.readout)
        return self.head(x)


def _sum_conv(conv: nn.Module, eps: float) -> SumConv:
    if isinstance(conv, PolyGINConv):
        rows = nn.Sequential(conv.lin1, conv.norm, conv.act, conv.lin2)
        return SumConv(rows, cast(Tensor, conv.eps), residual=conv.residual)
    return SumConv(conv, eps)


def message_passing(model: nn.Module) -> nn.Module:
    """The model itself if it is made of `MessagePassing` layers, or its twin. The weights are shared.

    >>> type(message_passing(GIN(2, 2, hidden_channels=4))).__name__
    'Twin'
    """
    if type(model) in (GIN, PolyGIN):
        return Twin(cast(GIN | PolyGIN, model))
    if any(isinstance(module, MessagePassing) for module in model.modules()):
        return model
    raise InputError(
        "model",
        got=f"{type(model).__name__} without message-passing layers",
        expected="apexgnn's GIN or PolyGIN, or a model with PyTorch Geometric's MessagePassing layers",
    )


def with_self_masks(model: nn.Module) -> nn.Module:
    """The same, with every GINConv replaced by its SumConv, so that self-terms can be masked too. Changes it."""
    model = message_passing(model)
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if type(child) is GINConv and child.aggr == "add" and child.flow == "source_to_target":
                gin: Any = child
                setattr(parent, name, SumConv(gin.nn, gin.eps))
    return model


def last_layer(model: nn.Module) -> nn.Module:
    """The last layer that passes messages.

    >>> model = GIN(2, 2, hidden_channels=4)
    >>> last_layer(model) is model.convs[-1]
    True
    """
    if type(model) in (GIN, PolyGIN):
        return cast(nn.ModuleList, model.convs)[-1]
    return [module for module in message_passing(model).modules() if isinstance(module, MessagePassing)][-1]
