"""Neighbourhood sums: out[v] = Σ_{(u→v)∈E} w_uv · h[u].

Duplicate edges are summed, self-loops count as edges, direction is respected.

With the edges sorted by target, node v sums one contiguous stretch of them, a *bag*, and on CPU nothing sums
bags faster than `embedding_bag`. Its own backward pass is slow and has no derivative, but the backward pass of
a neighbourhood sum is a neighbourhood sum along the reversed edges,

    ḡ[u] = Σ_{(u→v)∈E} w_uv · g[v],        ∂/∂w_uv = ⟨g[v], h[u]⟩,

so both directions use the same kernel and derivatives of every order exist. An `Adjacency` sorts the edges once
per direction, when that direction is first needed; a model makes one and hands it to all its layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag
from torch.overrides import has_torch_function

from apexgnn.errors import GraphError


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """Sums of rows: out[i] = Σ_k w_k · h[index[k]] over start[i] ≤ k < start[i + 1]; the last bag takes the rest.

    >>> Bags(torch.tensor([0, 1, 1]), torch.tensor([0, 2])).sum(torch.tensor([[1.0], [10.0]])).tolist()
    [[11.0], [10.0]]
    """

    index: Tensor
    start: Tensor
    weight: Tensor | None = None

    @classmethod
    def grouped(cls, owner: Tensor, index: Tensor, rows: int) -> tuple[Bags, Tensor]:
        """Row index[k] into bag owner[k], for bags 0 … rows − 1; and the order in which the bags hold them.

        >>> bags, order = Bags.grouped(torch.tensor([1, 0, 1]), torch.tensor([5, 6, 7]), 2)
        >>> bags.index.tolist(), bags.start.tolist(), order.tolist()
        ([6, 5, 7], [0, 1], [1, 0, 2])
        """
        order = owner.argsort(stable=True)
        count = torch.bincount(owner, minlength=rows)
        if count.numel() > rows:
            raise GraphError("edge_index", got=f"node {count.numel() - 1}", expected=f"nodes 0 … {rows - 1}")
        return cls(index[order], count.cumsum(0) - count), order

    def weighted(self, weight: Tensor | None) -> Bags:
        """The same bags, their entries weighted."""
        return Bags(self.index, self.start, weight)

    def sum(self, h: Tensor) -> Tensor:
        """Rows [·, C] to rows [len(start), C]."""
        return embedding_bag(self.index, h, self.start, mode="sum", per_sample_weights=self.weight)

    def repeated(self, count: int, rows: int) -> Bags:
        """The same sums in `count` blocks of `rows` rows each, one block below the other.

        >>> bags = Bags(torch.tensor([0, 1]), torch.tensor([0, 2])).repeated(2, 2)
        >>> bags.index.tolist(), bags.start.tolist()
        ([0, 1, 2, 3], [0, 2, 2, 4])
        """
        if count == 1:
            return self
        block = torch.arange(count).unsqueeze(1)
        index, start = self.index + rows * block, self.start + self.index.numel() * block
        weight = None if self.weight is None else self.weight.repeat(count)
        return Bags(index.view(-1), start.view(-1), weight)

    def part(self, first: int, last: int) -> Bags:
        """Bags `first` … `last` − 1.

        >>> Bags(torch.tensor([5, 6, 7]), torch.tensor([0, 1, 3])).part(1, 3).index.tolist()
        [6, 7]
        """
        rows = self.start.numel()
        if (first, last) == (0, rows):
            return self
        low = int(self.start[first])
        high = int(self.start[last]) if last < rows else self.index.numel()
        weight = None if self.weight is None else self.weight[low:high]
        return Bags(self.index[low:high], self.start[first:last] - low, weight)


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The edges of a graph, sorted for summing along them and against them.

    >>> edges = Adjacency(torch.tensor([[0, 1, 2], [1, 2, 1]]), 3)
    >>> edges.bags().index.tolist(), edges.bags(reverse=True).index.tolist()
    ([0, 2, 1], [1, 2, 1])
    """

    edge_index: Tensor
    num_nodes: int

    @classmethod
    def of(cls, edges: Tensor | Adjacency, num_nodes: int) -> Adjacency:
        """Wrap an edge index; an adjacency is returned as it is, with its sorted edges."""
        return edges if isinstance(edges, Adjacency) else cls(edges, num_nodes)

    @cached_property
    def _forward(self) -> tuple[Bags, Tensor]:
        return Bags.grouped(self.edge_index[1], self.edge_index[0], self.num_nodes)

    @cached_property
    def _reverse(self) -> tuple[Bags, Tensor]:
        return Bags.grouped(self.edge_index[0], self.edge_index[1], self.num_nodes)

    def bags(self, edge_weight: Tensor | None = None, *, reverse: bool = False) -> Bags:
        """What every node sums: the sources of its incoming edges, or the targets of its outgoing ones."""
        bags, order = self._reverse if reverse else self._forward
        return bags if edge_weight is None else bags.weighted(edge_weight[order])


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, edge_weight: Tensor | None, adjacency: Adjacency, reverse: bool
    ) -> Tensor:
        ctx.adjacency, ctx.reverse = adjacency, reverse
        ctx.save_for_backward(h if ctx.needs_input_grad[1] else None, edge_weight)
        return adjacency.bags(edge_weight, reverse=reverse).sum(h)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        h, edge_weight = ctx.saved_tensors
        grad, grad_h, grad_weight = grads[0].contiguous(), None, None
        if ctx.needs_input_grad[0]:
            grad_h = _sum(grad, edge_weight, ctx.adjacency, not ctx.reverse)
        if ctx.needs_input_grad[1]:
            source, target = ctx.adjacency.edge_index.flip(0) if ctx.reverse else ctx.adjacency.edge_index
            grad_weight = (grad[target] * h[source]).sum(dim=1)
        return grad_h, grad_weight, None, None


def _sum(h: Tensor, edge_weight: Tensor | None, adjacency: Adjacency, reverse: bool) -> Tensor:
    summed: Tensor = _Sum.apply(h, edge_weight, adjacency, reverse)  # type: ignore[no-untyped-call]
    return summed


def aggregate(h: Tensor, edge_index: Tensor | Adjacency, edge_weight: Tensor | None = None) -> Tensor:
    """Sum of the neighbours' rows at every node, differentiable in `h` and `edge_weight`.

    Args:
        h: [N, C] node rows.
        edge_index: [2, E], source row then target row, or an `Adjacency` made of it.
        edge_weight: [E], optional.

    Tensor subclasses meet ordinary torch operations only, so that whoever traces them sees what is computed.

    >>> aggregate(torch.tensor([[1.], [10.], [100.]]), torch.tensor([[0, 1, 2], [1, 2, 1]]))
    tensor([[  0.],
            [101.],
            [ 10.]])
    """
    adjacency = Adjacency.of(edge_index, h.size(0))
    if not _has_fast_sum(h, adjacency.edge_index, edge_weight):
        return _plain_sum(h, adjacency.edge_index, edge_weight)
    h = h.contiguous()
    if torch.is_grad_enabled() and (
        h.requires_grad or (edge_weight is not None and edge_weight.requires_grad)
    ):
        return _sum(h, edge_weight, adjacency, False)
    return adjacency.bags(edge_weight).sum(h)


def _has_fast_sum(h: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> bool:
    return (
        not has_torch_function((h, edge_index) if edge_weight is None else (h, edge_index, edge_weight))
        and h.dim() == 2
        and h.device.type == "cpu"
        and h.dtype in (torch.float32, torch.float64)
        and edge_index.dtype == torch.int64
        and (edge_weight is None or edge_weight.dtype == h.dtype)
    )


def _plain_sum(h: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
    messages = h.index_select(0, edge_index[0])
    if edge_weight is not None:
        messages = messages * edge_weight.unsqueeze(-1)
    return torch.zeros_like(h).index_add(0, edge_index[1], messages)
