"""The receptive cones of nodes: all that their scores depend on, layer by layer.

After K layers a node depends on V_K = {itself}, V_{k−1} = V_k and all with an edge into V_k. Layer k needs only the
rows of V_k, made from those of V_{k−1}: the last layer works on one row, the one before on the neighbours' rows, and
only the narrow input has as many rows as the whole neighbourhood.

The cones of several nodes are disjoint copies. Their rows are numbered so that V_K comes first and every V_k is the
beginning of V_{k−1}; the edges of V_k are then the beginning of the edges, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.aggregation import Bags
from apexgnn.explain.fused.operators import Neighbours
from apexgnn.explain.fused.pieces import layer_sums


@dataclass(frozen=True, slots=True, eq=False)
class Cones:
    """The cones of T nodes.

    Attributes:
        nodes: [|V₀|], the node that each row stands for.
        owner: [|V₀|], whose cone it is in: 0 … T − 1.
        edges: [2, e], row numbers.
        edge: [e], the edges' numbers in the graph.
        sizes: |V_K|, …, |V₀|.
        counts: how many edges lead into V_K, …, V₁.
    """

    nodes: Tensor
    owner: Tensor
    edges: Tensor
    edge: Tensor
    sizes: tuple[int, ...]
    counts: tuple[int, ...]

    def layers(
        self, *, edge_weight: Tensor | None, eps: Sequence[float], dtype: torch.dtype
    ) -> tuple[Neighbours, ...]:
        """S₁ … S_K, each from the rows of V_{k−1} to those of V_k."""
        sums: list[Neighbours] = []
        for k, value in enumerate(reversed(eps)):
            count = self.counts[k]
            weight = None if edge_weight is None else edge_weight[self.edge[:count]]
            sums += layer_sums(
                self.edges[:, :count],
                self.sizes[k],
                sources=self.sizes[k + 1],
                edge_weight=weight,
                eps=[value],
                dtype=dtype,
            )
        return tuple(reversed(sums))


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """The part of a graph within reach of some nodes, its edges sorted by target.

    Attributes:
        incoming: for every node of the graph, the sources of the edges into it, if it is in reach.
        edge: the edges' numbers in the graph, in the order of the bags.
        num_nodes: of the graph.
    """

    incoming: Bags
    edge: Tensor
    num_nodes: int

    @classmethod
    def of(cls, edge_index: Tensor, num_nodes: int, *, targets: Tensor, hops: int) -> Surroundings:
        """One look at every edge per hop; the edges out of reach are not sorted."""
        source, target = edge_index
        inside = torch.zeros(num_nodes, dtype=torch.bool)
        inside[targets] = True
        for _ in range(hops - 1):
            inside[source[inside[target]]] = True
        edge = inside[target].nonzero().flatten()
        incoming, order = Bags.grouped(target[edge], source[edge], num_nodes)
        return cls(incoming, edge[order], num_nodes)

    def cones(self, targets: Tensor, *, hops: int) -> Cones:
        """The cones of these nodes.

        >>> chain = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> one = torch.tensor([2])
        >>> cones = Surroundings.of(chain, 4, targets=one, hops=2).cones(one, hops=2)
        >>> cones.nodes.tolist(), cones.edges.tolist(), cones.sizes, cones.counts
        ([2, 1, 0], [[1, 2], [0, 1]], (1, 2, 3), (1, 2))
        """
        start, total = self.incoming.start, self.incoming.index.numel()
        degree = torch.cat([start[1:], start.new_tensor([total])]) - start
        keys = torch.arange(len(targets)) * self.num_nodes + targets  # a row is a pair of owner and node
        known, position = keys, torch.arange(len(keys))
        sizes, counts = [len(keys)], [0]
        edges: list[Tensor] = []
        sources: list[Tensor] = []
        fresh = keys
        for _ in range(hops):
            node = fresh % self.num_nodes
            count = degree[node]
            first = count.cumsum(0) - count
            reached = torch.arange(int(count.sum())) + torch.repeat_interleave(start[node] - first, count)
            found = torch.repeat_interleave(fresh - node, count) + self.incoming.index[reached]
            fresh = torch.unique(found)
            place = torch.searchsorted(known, fresh).clamp(max=len(known) - 1)
            fresh = fresh[known[place] != fresh]
            edges.append(reached)
            sources.append(found)
            counts.append(counts[-1] + reached.numel())
            keys = torch.cat([keys, fresh])
            known, position = keys.sort()
            sizes.append(len(keys))
        reached, found = torch.cat(edges), torch.cat(sources)
        node = keys % self.num_nodes
        into = torch.repeat_interleave(torch.arange(sizes[-2]), degree[node[: sizes[-2]]])
        rows = torch.stack([position[torch.searchsorted(known, found)], into])
        owner = torch.div(keys, self.num_nodes, rounding_mode="floor")
        return Cones(node, owner, rows, self.edge[reached], tuple(sizes), tuple(counts[1:]))
