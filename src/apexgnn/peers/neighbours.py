"""Explaining a node on its own neighbourhood, where that changes nothing.

Methods whose cost grows with the graph look at the nodes within L hops alone, L the number of message-passing layers.
A layer may look further (a degree at the border, a norm over all nodes); then the output on the neighbourhood differs
from the output on the graph, and the whole graph is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from apexgnn.explain.question import ask
from apexgnn.neighbourhood import neighbourhood
from apexgnn.peers.case import Case, Scores
from apexgnn.peers.layers import message_passing


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """A case on a part of its graph.

    Attributes:
        case: the same question on the part.
        nodes: [n], its nodes in their old numbers.
        edges: [E] booleans, its edges among the old ones.
    """

    case: Case
    nodes: Tensor
    edges: Tensor
    total: int

    def whole(self, nodes: Tensor, edges: Tensor | None, evaluations: int) -> Scores:
        """Scores of the whole graph: outside the part the lowest score, and at most 0."""
        all_nodes = nodes.new_full((self.total,), min(0.0, float(nodes.min())))
        all_nodes[self.nodes] = nodes
        if edges is None:
            return Scores(nodes=all_nodes, evaluations=evaluations)
        lowest = min(0.0, float(edges.min())) if edges.numel() else 0.0
        all_edges = edges.new_full((len(self.edges),), lowest)
        all_edges[self.edges] = edges
        return Scores(nodes=all_nodes, edges=all_edges, evaluations=evaluations)


def hops(model: torch.nn.Module) -> int:
    """How many message-passing layers the model has.

    >>> from apexgnn.nn import GIN
    >>> hops(GIN(2, 2, hidden_channels=4))
    3
    """
    return sum(isinstance(module, MessagePassing) for module in message_passing(model).modules())


def around(case: Case) -> Local:
    """The case on the explained node's neighbourhood; as it is for a graph task, or where the output would differ."""
    question, edge_index = case.question, case.edge_index
    total = len(question.x)
    everything = Local(case, torch.arange(total), torch.ones(edge_index.size(1), dtype=torch.bool), total)
    if case.index is None:
        return everything
    part = neighbourhood(edge_index, case.index, hops=hops(case.model), num_nodes=total)
    weight = question.data.edge_weight
    data = Data(
        x=question.x[part.nodes],
        edge_index=part.edge_index,
        edge_weight=None if weight is None else weight[part.edges],
    )
    baseline = question.baseline[part.nodes]
    local = ask(question.model, data, baseline=baseline, index=part.index, call=question.call)
    here, there = local.logits(local.x), question.logits(question.x)
    if not torch.allclose(here, there, rtol=1e-4, atol=1e-5):
        return everything
    return Local(replace(case, question=local), part.nodes, part.edges, total)
