"""PolyGIN and the GIN it is compared with: layers, a readout, a head.

    PolyGIN:  num_layers × PolyGINConv → readout → Linear → σ → Dropout → Linear
    GIN:      num_layers × (aggregate → Linear → ReLU → Linear → ReLU) → readout → Linear → ReLU → Dropout → Linear

With num_layers = 3 PolyGIN has L = 4 quadratic blocks (the head is the fourth), so its logits have degree
2⁴ = 16 in x, and 8 Gauss–Legendre points make the path integral exact. The presets have the parameter
counts of the paper: 14 → 2 gives 547,806 for PolyGIN and 546,902 for GIN.

Both are called as PyTorch Geometric calls its models:
`model(x, edge_index, batch=None, edge_weight=None, batch_size=None)`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from apexgnn.aggregation import Adjacency, aggregate
from apexgnn.errors import InputError
from apexgnn.nn.layers import PolyActivation, PolyGINConv

TASKS = ("graph", "node")
READOUTS = ("mean", "sum")


def readout(h: Tensor, batch: Tensor | None, how: str, batch_size: int | None = None) -> Tensor:
    """Rows [N, C] to one row per graph [G, C]; a graph without nodes gets zeros.

    >>> readout(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1]), "mean").tolist()
    [[2.0], [5.0]]
    """
    if batch is None:
        total = h.sum(dim=0, keepdim=True)
        return total / max(h.size(0), 1) if how == "mean" else total
    graphs = batch_size if batch_size is not None else (int(batch.max()) + 1 if batch.numel() else 0)
    total = h.new_zeros((graphs, h.size(1))).index_add(0, batch, h)
    if how == "sum":
        return total
    count = torch.bincount(batch, minlength=graphs).clamp(min=1).to(h.dtype)
    mean: Tensor = total / count.unsqueeze(-1)
    return mean


def _chosen(name: str, value: str, valid: tuple[str, ...]) -> str:
    if value not in valid:
        raise InputError(name, got=repr(value), expected="one of " + ", ".join(map(repr, valid)))
    return value


def _check_sizes(in_channels: int, out_channels: int, hidden_channels: int, num_layers: int) -> None:
    widths = {"in_channels": in_channels, "out_channels": out_channels, "hidden_channels": hidden_channels}
    for name, size in (widths | {"num_layers": num_layers}).items():
        least = 0 if name == "num_layers" else 1
        if size < least:
            raise InputError(name, got=str(size), expected=f"at least {least}")


class PolyGIN(nn.Module):
    """A GIN whose logits are polynomials in the node features.

    Args:
        in_channels: node features.
        out_channels: classes (or regression targets).
        hidden_channels: width of every layer.
        num_layers: message-passing layers; the head adds one quadratic block, so L = num_layers + 1.
        task: "graph" (readout, one row per graph) or "node" (one row per node).
        readout: "mean" or "sum", for graph tasks.
        dropout: in the head, in training mode only.
        eps: ε of every layer; train_eps learns it.
        theta: "scalar" (the paper's counts) or "channel" (the paper's text).
        theta_init: where θ starts.
        residual: add its input to every message-passing layer but the first; the degree stays.

    >>> model = PolyGIN(14, 2)
    >>> sum(p.numel() for p in model.parameters())
    547806
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden_channels: int = 300,
        num_layers: int = 3,
        task: str = "graph",
        readout: str = "mean",
        dropout: float = 0.5,
        eps: float = 0.0,
        train_eps: bool = False,
        theta: str = "scalar",
        theta_init: float = 0.1,
        residual: bool = False,
    ) -> None:
        super().__init__()
        _check_sizes(in_channels, out_channels, hidden_channels, num_layers)
        self.config: dict[str, Any] = {
            "in_channels": in_channels,
            "out_channels": out_channels,
            "hidden_channels": hidden_channels,
            "num_layers": num_layers,
            "task": _chosen("task", task, TASKS),
            "readout": _chosen("readout", readout, READOUTS),
            "dropout": dropout,
            "eps": eps,
            "train_eps": train_eps,
            "theta": _chosen("theta", theta, ("scalar", "channel")),
            "theta_init": theta_init,
            "residual": residual,
        }
        self.task, self.readout = task, readout
        widths = [in_channels] + [hidden_channels] * num_layers
        self.convs = nn.ModuleList(
            PolyGINConv(
                *ends,
                eps=eps,
                train_eps=train_eps,
                theta=theta,
                theta_init=theta_init,
                residual=residual and layer > 0,
            )
            for layer, ends in enumerate(pairwise(widths))
        )
        self.head = nn.Sequential(
            nn.Linear(widths[-1], hidden_channels),
            PolyActivation(hidden_channels if theta == "channel" else None, init=theta_init),
            nn.Dropout(dropout),
            nn.Linear(hidden_channels, out_channels),
        )

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for module in (*self.convs, self.head[0], self.head[1], self.head[3]):
            module.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Logits: one row per graph, or per node for a node task."""
        edges = Adjacency.of(edge_index, x.size(0))
        for conv in self.convs:
            x = conv(x, edges, edge_weight)
        if self.task == "graph":
            x = readout(x, batch, self.readout, batch_size)
        logits: Tensor = self.head(x)
        return logits


class GIN(nn.Module):
    """The reference GIN of the same shape with ReLU, ε fixed.

    >>> model = GIN(14, 2)
    >>> sum(p.numel() for p in model.parameters())
    546902
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden_channels: int = 300,
        num_layers: int = 3,
        task: str = "graph",
        readout: str = "mean",
        dropout: float = 0.5,
        eps: float = 0.0,
    ) -> None:
        super().__init__()
        _check_sizes(in_channels, out_channels, hidden_channels, num_layers)
        self.config: dict[str, Any] = {
            "in_channels": in_channels,
            "out_channels": out_channels,
            "hidden_channels": hidden_channels,
            "num_layers": num_layers,
            "task": _chosen("task", task, TASKS),
            "readout": _chosen("readout", readout, READOUTS),
            "dropout": dropout,
            "eps": eps,
        }
        self.task, self.readout, self.eps = task, readout, eps
        widths = [in_channels] + [hidden_channels] * num_layers
        self.convs = nn.ModuleList(
            nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b), nn.ReLU()) for a, b in pairwise(widths)
        )
        self.head = nn.Sequential(
            nn.Linear(widths[-1], hidden_channels),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_channels, out_channels),
        )

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Logits: one row per graph, or per node for a node task."""
        edges = Adjacency.of(edge_index, x.size(0))
        for conv in self.convs:
            x = conv((1 + self.eps) * x + aggregate(x, edges, edge_weight))
        if self.task == "graph":
            x = readout(x, batch, self.readout, batch_size)
        logits: Tensor = self.head(x)
        return logits
