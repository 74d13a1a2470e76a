"""The computation graph of a node: what its output can depend on.

A network of L message-passing layers lets node v see the nodes from which a walk of at most L edges leads
to v. For layers that sum messages, cutting everything else away changes nothing at v. Layers that normalise
by degree look one step further, and a layer that normalises over all nodes sees everything: callers check.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """Part of a graph around a node.

    Attributes:
        nodes: [n], the nodes kept, in their old numbers, ascending.
        edges: [E] booleans, the edges kept: both ends are among the nodes.
        edge_index: [2, e], those edges in new numbers.
        index: the node, in its new number.
    """

    nodes: Tensor
    edges: Tensor
    edge_index: Tensor
    index: int


def neighbourhood(edge_index: Tensor, index: int, *, hops: int, num_nodes: int) -> Neighbourhood:
    """The nodes from which at most `hops` edges lead to `index`, and the edges among them.

    >>> chain = torch.tensor([[0, 1, 2], [1, 2, 3]])
    >>> part = neighbourhood(chain, 3, hops=2, num_nodes=5)
    >>> part.nodes.tolist(), part.edge_index.tolist(), part.index
    ([1, 2, 3], [[0, 1], [1, 2]], 2)
    """
    source, target = edge_index
    inside = torch.zeros(num_nodes, dtype=torch.bool, device=edge_index.device)
    inside[index] = True
    for _ in range(hops):
        inside[source[inside[target]]] = True
    edges = inside[source] & inside[target]
    number = inside.cumsum(0) - 1
    return Neighbourhood(inside.nonzero().flatten(), edges, number[edge_index[:, edges]], int(number[index]))
