"""Streams of graphs and many nodes of one graph, against one at a time."""

import pytest
import torch
from torch_geometric.data import Data

import apexgnn
from apexgnn.explain import many
from explain.nets import Stack, graph, poly_gin


def graphs(count=23):
    return [graph(3 + (7 * k) % 11, 5, 2 + (5 * k) % 17, seed=k) for k in range(count)]


@pytest.mark.parametrize("window, rows", [(2048, 4096), (5, 20)])
def test_stream_is_one_by_one_and_in_order(monkeypatch, window, rows):
    monkeypatch.setattr(many, "WINDOW", window)
    monkeypatch.setattr(many, "ROWS", rows)
    model = poly_gin()
    results = apexgnn.attribute_many(model, (g for g in graphs()), progress=False)
    for result, data in zip(results, graphs(), strict=True):
        alone = apexgnn.attribute(model, data)
        torch.testing.assert_close(result.features, alone.features, rtol=1e-9, atol=1e-13)
        for name in ("score", "baseline_score", "target", "condition"):
            torch.testing.assert_close(getattr(result, name), getattr(alone, name), rtol=1e-8, atol=1e-12)
        assert result.certificate.points == 8


def test_stream_is_read_as_it_is_used(monkeypatch):
    monkeypatch.setattr(many, "WINDOW", 4)
    read = []

    def endless():
        while True:
            read.append(1)
            yield graph(seed=len(read))

    results = apexgnn.attribute_many(poly_gin(), endless(), progress=False)
    assert [next(results).exact for _ in range(6)] == [True] * 6
    assert len(read) == 8


def test_targets_follow_their_graphs():
    model, targets = poly_gin(), torch.arange(23) % 3
    for k, result in enumerate(apexgnn.attribute_many(model, graphs(), target=targets, progress=False)):
        assert int(result.target) == k % 3


def test_a_bad_graph_is_named():
    bad = [*graphs(3), Data(x=torch.zeros(0, 5).double(), edge_index=torch.zeros(2, 0).long())]
    with pytest.raises(apexgnn.InputError, match=r"graph 3.*no nodes"):
        list(apexgnn.attribute_many(poly_gin(), bad, progress=False))


def large(nodes=60):
    source = torch.Generator().manual_seed(4)
    return Data(
        x=torch.randn(nodes, 5, generator=source).double(),
        edge_index=torch.randint(0, nodes, (2, 2 * nodes), generator=source),
        edge_weight=torch.rand(2 * nodes, generator=source).double(),
    )


@pytest.mark.parametrize("layers", [1, 3])
def test_nodes_on_their_fields_are_nodes_on_the_graph(layers):
    model, data = poly_gin(task="node", num_layers=layers), large()
    nodes = [5, 0, 59, 5]
    start = torch.randn(60, 5, generator=torch.Generator().manual_seed(5)).double()
    results = list(apexgnn.attribute_nodes(model, data, nodes, baseline=start))
    for node, result in zip(nodes, results, strict=True):
        whole = apexgnn.attribute(model, data, index=node, baseline=start)
        full = torch.zeros_like(data.x)
        full[result.subset] = result.features
        torch.testing.assert_close(full, whole.features, rtol=1e-9, atol=1e-13)
        torch.testing.assert_close(result.score, whole.score)
        assert len(result.subset) < 60


def test_other_models_say_how_far_they_look():
    model, data = Stack("GCNConv", pool=None).double().eval(), large()
    with pytest.raises(apexgnn.InputError, match="hops"):
        next(apexgnn.attribute_nodes(model, data, [5]))
    del data.edge_weight
    # two layers, and the degrees one step further
    (result,) = apexgnn.attribute_nodes(model, data, [5], hops=3)
    assert 1 < len(result.subset) < 60
    full = torch.zeros_like(data.x)
    full[result.subset] = result.features
    torch.testing.assert_close(full, apexgnn.attribute(model, data, index=5).features, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_too_few_hops_are_found_out(hops):
    """Two GCN layers need three: the degrees of the outermost nodes count too."""
    model, data = Stack("GCNConv", pool=None).double().eval(), large()
    del data.edge_weight
    with pytest.raises(apexgnn.InputError, match=r"hops.*node 5 has another score"):
        list(apexgnn.attribute_nodes(model, data, [5], hops=hops))


@pytest.mark.parametrize("hops", [-1, 1.5, "2"])
def test_hops_must_count(hops):
    with pytest.raises(apexgnn.InputError, match="hops"):
        list(apexgnn.attribute_nodes(poly_gin(task="node"), large(), [3], hops=hops))


def test_an_altered_poly_gin_is_held_against_the_whole_graph():
    model = poly_gin(task="node", num_layers=2)
    model.convs[0].register_forward_hook(lambda module, args, out: out - out.mean(0))
    with pytest.raises(apexgnn.InputError, match="hops"):
        list(apexgnn.attribute_nodes(model, large(), [5]))


@pytest.mark.parametrize("baseline", ["mean", "permutation", [0.0, 1.0], torch.linspace(-1, 1, 5)])
def test_baselines_are_those_of_the_whole_graph(baseline):
    model, data = poly_gin(task="node", num_layers=2), large()
    (result,) = apexgnn.attribute_nodes(model, data, [5], baseline=baseline)
    whole = apexgnn.attribute(model, data, index=5, baseline=baseline)
    torch.testing.assert_close(result.baseline_score, whole.baseline_score, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(result.features, whole.features[result.subset], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("edge", [99, -1])
def test_a_bad_graph_is_refused_wherever_it_is_bad(edge):
    data = large()
    data.edge_index[1, 0] = edge
    with pytest.raises(apexgnn.GraphError, match=f"edge_index: got node {edge}"):
        list(apexgnn.attribute_nodes(poly_gin(task="node"), data, [3]))


@pytest.mark.parametrize("target", [[1, 0, 2], torch.tensor([1, 0, 2])])
def test_targets_in_a_list_follow_their_graphs_too(target):
    """The graphs are of falling size, so that they are explained in another order than they are given."""
    given = [graph(9, seed=1), graph(7, seed=2), graph(5, seed=3)]
    results = apexgnn.attribute_many(poly_gin(), given, target=target, progress=False)
    assert [int(result.target) for result in results] == [1, 0, 2]
    with pytest.raises(apexgnn.TargetError, match="3 entries"):
        list(apexgnn.attribute_many(poly_gin(), [*given, graph()], target=target, progress=False))


@pytest.mark.parametrize("node", [60, -1])
def test_a_node_that_is_not_there(node):
    with pytest.raises(apexgnn.TargetError, match="index"):
        list(apexgnn.attribute_nodes(poly_gin(task="node"), large(), [node]))
