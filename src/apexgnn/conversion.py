"""Scores of edges into scores of nodes, and back.

From edges to nodes, over the edges e that touch v:

    endpoints   max_e s_e     going down the ranked edges and taking both end points of each visits the
                              nodes in this order, so any top-k of it is "the end points of the best edges"
    mean        mean_e s_e
    sum         Σ_e s_e

A node that no edge touches gets the lowest score of all, and at most 0: it ranks last.
From nodes to edges: the mean of the two end points.
"""

from __future__ import annotations

from torch import Tensor

from apexgnn.choice import Choice


class Conversion(Choice):
    """How edge scores become node scores."""

    ENDPOINTS = "endpoints"
    MEAN = "mean"
    SUM = "sum"


def node_scores(
    edges: Tensor, edge_index: Tensor, *, num_nodes: int, conversion: Conversion | str = Conversion.ENDPOINTS
) -> Tensor:
    """Node scores [N] from edge scores [E].

    >>> import torch
    >>> path = torch.tensor([[0, 1], [1, 2]])
    >>> node_scores(torch.tensor([0.5, 2.0]), path, num_nodes=4).tolist()
    [0.5, 2.0, 2.0, 0.0]
    >>> node_scores(torch.tensor([0.5, 2.0]), path, num_nodes=4, conversion="sum").tolist()
    [0.5, 2.5, 2.0, 0.0]
    """
    how = Conversion(conversion)
    ends, scores = edge_index.flatten(), edges.repeat(2)
    lowest = min(0.0, float(edges.min())) if edges.numel() else 0.0
    reduce = {Conversion.ENDPOINTS: "amax", Conversion.MEAN: "mean", Conversion.SUM: "sum"}[how]
    nodes = edges.new_full((num_nodes,), lowest)
    return nodes.scatter_reduce(0, ends, scores, reduce=reduce, include_self=False)


def edge_scores(nodes: Tensor, edge_index: Tensor) -> Tensor:
    """Edge scores [E] from node scores [N]: the mean of the end points.

    >>> import torch
    >>> edge_scores(torch.tensor([1.0, 3.0]), torch.tensor([[0], [1]])).tolist()
    [2.0]
    """
    return nodes[edge_index].mean(dim=0)
