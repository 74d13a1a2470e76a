"""BA-Shapes as generated: its houses are houses, its counts those of the published graph."""

import networkx as nx
import pytest
import torch

from apexgnn.data import load
from apexgnn.data.ba_shapes import generate


def as_networkx(data):
    graph = nx.Graph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(data.edge_index.T.tolist())
    return graph


@pytest.mark.parametrize("seed", range(5))
def test_counts(seed):
    data = generate(seed)
    assert data.x.tolist() == [[1.0] * 10] * 700
    assert data.y.bincount().tolist() == [300, 160, 160, 80]
    assert data.num_edges == 4110
    assert data.motif.sum() == 400
    assert data.edge_gt.sum() == 960
    assert data.validate()
    assert data.is_undirected()
    assert not data.has_self_loops()
    assert data.is_coalesced()


def test_true_edges_are_eighty_houses():
    data = generate(1)
    house = nx.house_graph()
    graph = as_networkx(data).edge_subgraph([tuple(e) for e in data.edge_index.T[data.edge_gt].tolist()])
    parts = [graph.subgraph(nodes) for nodes in nx.connected_components(graph)]
    assert len(parts) == 80
    assert all(nx.is_isomorphic(part, house) for part in parts)
    for part in parts:
        top = [v for v in part if data.y[v] == 3]
        middle = {v for v in part if data.y[v] == 1}
        assert len(top) == 1
        assert set(part[top[0]]) == middle
        assert all(part.degree[v] == 3 for v in middle)


def test_without_random_edges_each_house_hangs_on_one_edge():
    data = generate(2, extra_edges=0)
    graph = as_networkx(data)
    assert graph.number_of_edges() == 5 * 295 + 80 * 7
    assert nx.is_connected(graph)
    between = [(a, b) for a, b in graph.edges if (data.y[a] == 0) != (data.y[b] == 0)]
    assert len(between) == 80
    assert len({min(pair) for pair in between}) == 80


def test_seeded():
    assert torch.equal(generate(5).edge_index, generate(5).edge_index)
    assert not torch.equal(generate(5).edge_index, generate(6).edge_index)
    assert generate(0, extra_edges=70).num_edges == 4210
    assert torch.equal(load("ba-shapes")[0].edge_index, generate(0).edge_index)
