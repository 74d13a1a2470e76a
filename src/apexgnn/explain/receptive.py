"""The receptive field of a node: what the output of a message-passing network there can depend on.

L layers let v see the nodes from which a walk of at most L edges leads to v. The messages into the outermost of
them are never used, so only the edges into nodes within L − 1 steps are kept. This is exact for layers that sum
messages. A layer that normalises by the degree of both ends looks one step further: give one hop more.

Edges are sorted by target once; after that a field costs what it contains, not what the graph contains.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from apexgnn.errors import TargetError


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Part of a graph: its nodes in rising order, its edges by number, and where its centre is among the nodes."""

    nodes: Tensor
    edges: Tensor
    edge_index: Tensor
    centre: int

    def part(self, data: Data) -> Data:
        """The part as a graph of its own."""
        weight = data.edge_weight
        return Data(
            x=data.x[self.nodes],
            edge_index=self.edge_index,
            **({} if weight is None else {"edge_weight": weight[self.edges]}),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """A graph whose edges are sorted by target, so that the fields of its nodes can be looked up."""

    source: Tensor
    order: Tensor
    start: Tensor

    @classmethod
    def of(cls, edge_index: Tensor, nodes: int) -> Fields:
        """Sort the edges.

        >>> chain = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
        >>> field = Fields.of(chain, 5).around(3, 2)
        >>> field.nodes.tolist(), field.edge_index.tolist(), field.centre
        ([1, 2, 3], [[1, 0], [2, 1]], 2)
        """
        order = edge_index[1].argsort(stable=True)
        count = torch.bincount(edge_index[1], minlength=nodes)
        start = torch.cat([count.new_zeros(1), count.cumsum(0)])
        return cls(edge_index[0][order], order, start)

    def around(self, node: int, hops: int) -> Field:
        """The field of a node."""
        if not 0 <= node < len(self.start) - 1:
            raise TargetError("index", got=str(node), expected=f"a node from 0 to {len(self.start) - 2}")
        frontier = nodes = torch.tensor([node])
        edges, targets = [], []
        for _ in range(hops):
            places, into = self._edges_into(frontier)
            edges.append(places)
            targets.append(into)
            reached = self.source[places].unique()
            frontier = reached[~torch.isin(reached, nodes, assume_unique=True)]
            nodes = torch.cat([nodes, frontier])
        nodes = nodes.sort().values
        kept = torch.cat(edges) if edges else nodes.new_empty(0)
        into = torch.cat(targets) if targets else nodes.new_empty(0)
        ends = torch.stack([self.source[kept], into])
        return Field(
            nodes, self.order[kept], torch.searchsorted(nodes, ends), int(torch.searchsorted(nodes, node))
        )

    def _edges_into(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The places, in sorted order, of all edges into these nodes, and the node that each leads to."""
        first = self.start[nodes]
        count = self.start[nodes + 1] - first
        total = count.cumsum(0)
        within = torch.arange(int(count.sum())) - (total - count).repeat_interleave(count)
        return first.repeat_interleave(count) + within, nodes.repeat_interleave(count)
