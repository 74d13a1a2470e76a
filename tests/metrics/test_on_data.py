"""The yardsticks on BA-Shapes and on Mutagenicity: dice at chance, an oracle perfect, degeneracy told."""

from __future__ import annotations

import os

import pytest
import torch
from torch_geometric.data import Data

from apexgnn import peers
from apexgnn.conversion import edge_scores
from apexgnn.data import load
from apexgnn.metrics import Protocol, fidelity, ground_truth
from apexgnn.neighbourhood import neighbourhood
from apexgnn.nn import GIN


def houses(count: int = 60) -> list[tuple[Data, int, torch.Tensor]]:
    """Neighbourhoods of house nodes, the node in each, and which edges are its house's."""
    whole = load("ba-shapes")[0]
    found = []
    for node in (whole.y > 0).nonzero().flatten()[:count].tolist():
        part = neighbourhood(whole.edge_index, node, hops=3, num_nodes=700)
        own = part.nodes[part.edge_index].sub(300).div(5, rounding_mode="floor") == (node - 300) // 5
        truth = whole.edge_gt[part.edges] & own.all(0)
        graph = Data(x=whole.x[part.nodes], edge_index=part.edge_index, y=whole.y[part.nodes])
        found.append((graph, part.index, truth))
    return found


def test_dice_and_oracle_on_houses():
    model, found = GIN(10, 4, hidden_channels=4, task="node"), houses()
    truth = [t for _, _, t in found]
    assert {int(t.sum()) for t in truth} == {12}  # six edges, both ways
    dice = [
        edge_scores(peers.get("random").explain(model, g, index=node, seed=i).nodes, g.edge_index)
        for i, (g, node, _) in enumerate(found)
    ]
    area, _ = ground_truth(dice, truth).intervals(level=0.99)
    assert area.low <= 0.5 <= area.high
    oracle = ground_truth([t.double() for t in truth], truth)
    assert oracle.auc.eq(1).all()
    assert oracle.precision.eq(1).all()


def test_permuting_the_constant_features_of_ba_shapes_is_said_to_show_nothing():
    torch.manual_seed(0)
    model, found = GIN(10, 4, hidden_channels=4, task="node"), houses(5)
    graphs, index, _ = zip(*found, strict=True)
    scores = [torch.rand(len(graph.x)) for graph in graphs]
    result = fidelity(model, graphs, scores=scores, index=index, protocol=Protocol(correct_only=False))
    assert result.plus.abs().max() < 1e-6
    assert "zero there by construction" in result.notes[0]
    baseline = Protocol(correct_only=False, masking="baseline", output="raw")
    assert fidelity(model, graphs, scores=scores, index=index, protocol=baseline).plus.abs().max() > 1e-3


@pytest.mark.data
@pytest.mark.skipif("APEXGNN_DATA" not in os.environ, reason="APEXGNN_DATA names no folder with the raw data")
def test_dice_and_oracle_on_functional_groups():
    dataset = load("mutagenicity")
    graphs = [graph for graph in dataset if graph.edge_gt.any() and not graph.edge_gt.all()][:300]
    model = GIN(14, 2, hidden_channels=4)
    truth = [graph.edge_gt.bool() for graph in graphs]
    dice = [
        edge_scores(peers.get("random").explain(model, graph, seed=i).nodes, graph.edge_index)
        for i, graph in enumerate(graphs)
    ]
    area, _ = ground_truth(dice, truth).intervals(level=0.99)
    assert area.low <= 0.5 <= area.high
    assert ground_truth([t.double() for t in truth], truth).auc.eq(1).all()
