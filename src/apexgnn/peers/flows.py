"""Message flows: the walks along which information travels through L message-passing layers (Gui et al., 2023).

The graph is given one self-loop per node in place of its own, because a layer also passes a node's features to
itself. A pair (l, e) is one of these E₀ + N edges in one of the L layers; a flow is a walk e₁ … e_L of one edge per
layer, each starting where the one before it ends. In a node task only flows that end at the explained node count.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.errors import MemoryBudgetError


@dataclass(frozen=True, slots=True, eq=False)
class LoopedEdges:
    """The edges with one self-loop per node in place of the graph's own.

    Attributes:
        edge_index: [2, E₀ + N], proper edges first, then the loops of nodes 0 … N − 1.
        column: [E], for every column of the graph's own edge_index, which of these it is.
    """

    edge_index: Tensor
    column: Tensor

    @property
    def proper(self) -> Tensor:
        """[E] booleans: the graph's own columns that are not self-loops."""
        return self.column < self.edge_index.size(1) - (int(self.edge_index[0, -1]) + 1)


def looped(edge_index: Tensor, num_nodes: int) -> LoopedEdges:
    """Strip self-loops, then append one per node.

    >>> looped(torch.tensor([[0, 1, 0], [1, 1, 1]]), 2).edge_index.tolist()
    [[0, 0, 0, 1], [1, 1, 0, 1]]
    """
    proper = edge_index[0] != edge_index[1]
    nodes = torch.arange(num_nodes, device=edge_index.device)
    count = int(proper.sum())
    column = torch.where(proper, proper.cumsum(0) - 1, count + edge_index[0])
    return LoopedEdges(torch.cat([edge_index[:, proper], nodes.repeat(2, 1)], dim=1), column)


def count_flows(edge_index: Tensor, *, layers: int, num_nodes: int, index: int | None = None) -> int:
    """How many flows there are, without listing them.

    >>> count_flows(torch.tensor([[0, 0, 1], [1, 0, 1]]), layers=3, num_nodes=2)
    5
    """
    ends = torch.ones(num_nodes, dtype=torch.float64)
    if index is not None:
        ends = torch.zeros_like(ends)
        ends[index] = 1
    for _ in range(layers):
        ends = torch.zeros_like(ends).index_add(0, edge_index[0], ends[edge_index[1]])
    return int(ends.sum())


def list_flows(
    edge_index: Tensor, *, layers: int, num_nodes: int, index: int | None = None, limit: int = 2_000_000
) -> Tensor:
    """[M, L]: all flows, as the numbers of their edges, first layer first.

    >>> list_flows(torch.tensor([[0, 0, 1], [1, 0, 1]]), layers=2, num_nodes=2).tolist()
    [[1, 0], [1, 1], [0, 2], [2, 2]]
    """
    total = count_flows(edge_index, layers=layers, num_nodes=num_nodes, index=index)
    if total > limit:
        raise MemoryBudgetError(f"flowx: {total} flows of length {layers}; the bound is {limit}")
    source, target = edge_index
    by_target = target.argsort(stable=True)
    degree = torch.bincount(target, minlength=num_nodes)
    first = degree.cumsum(0) - degree
    edges = torch.arange(source.numel()) if index is None else (target == index).nonzero().flatten()
    flows = edges.unsqueeze(1)
    for _ in range(layers - 1):
        start = source[flows[:, 0]]
        repeats = degree[start]
        owner = torch.arange(flows.size(0)).repeat_interleave(repeats)
        within = torch.arange(owner.numel()) - (repeats.cumsum(0) - repeats)[owner]
        before = by_target[first[start[owner]] + within]
        flows = torch.cat([before.unsqueeze(1), flows[owner]], dim=1)
    return flows
