"""PolyGIN and GIN compute what their definitions say, at the sizes that the paper reports."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from apexgnn.errors import InputError
from apexgnn.nn import GIN, PolyActivation, PolyGIN, PolyScaleNorm
from oracles.plain import adjacency, forward, plain

COUNTS = [
    # data set, node features, classes, task, GIN, PolyGIN
    ("BA-Shapes", 10, 4, "node", 546_304, 547_208),
    ("BBBP", 9, 2, "graph", 545_402, 546_306),
    ("BACE", 9, 2, "graph", 545_402, 546_306),
    ("Graph-SST2", 768, 2, "graph", 773_102, 774_006),
    ("Mutagenicity", 14, 2, "graph", 546_902, 547_806),
]


@pytest.mark.parametrize("name, features, classes, task, gin, polygin", COUNTS)
def test_parameter_counts_of_the_paper(*, name, features, classes, task, gin, polygin):
    for cls, expected in [(GIN, gin), (PolyGIN, polygin)]:
        model = cls(features, classes, task=task)
        assert sum(p.numel() for p in model.parameters() if p.requires_grad) == expected


def test_options_change_the_counts_as_they_should():
    base = sum(p.numel() for p in PolyGIN(14, 2).parameters())
    assert sum(p.numel() for p in PolyGIN(14, 2, train_eps=True).parameters()) == base + 3
    assert sum(p.numel() for p in PolyGIN(14, 2, theta="channel").parameters()) == base + 4 * 299


def randomised(model, seed):
    """Every parameter drawn anew, so that none hides behind its initial value."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 2)
    return model.eval()


@st.composite
def graphs(draw, features=3):
    """Small directed multigraphs with self-loops, isolated nodes and weights."""
    nodes = draw(st.integers(1, 6))
    edges = draw(st.lists(st.tuples(*[st.integers(0, nodes - 1)] * 2), max_size=12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = rng.normal(size=len(edges)) if draw(st.booleans()) else None
    return rng.normal(size=(nodes, features)), edges, weights


def tensors(x, edges, weights):
    index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    return torch.tensor(x), index, None if weights is None else torch.tensor(weights)


@settings(deadline=None, max_examples=60)
@given(
    graph=graphs(),
    kind=st.sampled_from([("node", "mean"), ("graph", "mean"), ("graph", "sum")]),
    layers=st.integers(0, 3),
    theta=st.sampled_from(["scalar", "channel"]),
    train_eps=st.booleans(),
    eps=st.sampled_from([0.0, -1.0, 0.375]),
    seed=st.integers(0, 1000),
)
def test_polygin_agrees_with_a_dense_matrix(*, graph, kind, layers, theta, train_eps, eps, seed):
    task, readout = kind
    options = {"theta": theta, "train_eps": train_eps, "eps": eps, "task": task, "readout": readout}
    model = randomised(PolyGIN(3, 2, hidden_channels=4, num_layers=layers, **options).double(), seed)
    x, index, weights = tensors(*graph)
    got = model(x, index, edge_weight=weights).detach().numpy()
    expected = forward(plain(model.state_dict(), readout=None if task == "node" else readout), *graph)
    scale = np.abs(expected).max() + 1
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12 * scale)


@settings(deadline=None, max_examples=30)
@given(graph=graphs(), task=st.sampled_from(["node", "graph"]), seed=st.integers(0, 1000))
def test_gin_agrees_with_a_dense_matrix(graph, task, seed):
    model = randomised(GIN(3, 2, hidden_channels=4, num_layers=2, task=task, eps=0.5).double(), seed)
    x, index, weights = tensors(*graph)
    h, a = graph[0], adjacency(len(graph[0]), graph[1], graph[2])

    def linear(module, rows):
        return rows @ module.weight.detach().numpy().T + module.bias.detach().numpy()

    for conv in model.convs:
        h = np.maximum(linear(conv[0], 1.5 * h + a @ h), 0)
        h = np.maximum(linear(conv[2], h), 0)
    if task == "graph":
        h = h.mean(axis=0, keepdims=True)
    expected = linear(model.head[3], np.maximum(linear(model.head[0], h), 0))
    np.testing.assert_allclose(
        model(x, index, edge_weight=weights).detach().numpy(), expected, rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("cls", [PolyGIN, GIN])
@pytest.mark.parametrize("readout", ["mean", "sum"])
def test_a_batch_is_its_graphs_one_by_one(cls, readout):
    rng = np.random.default_rng(0)
    items = []
    for nodes, edges in [(4, [(0, 1), (1, 0), (2, 2)]), (1, []), (3, []), (5, [(0, 4), (4, 0), (1, 4)])]:
        x, index, _ = tensors(rng.normal(size=(nodes, 3)), edges, None)
        items.append(Data(x=x, edge_index=index))
    model = randomised(cls(3, 2, hidden_channels=4, readout=readout).double(), 1)
    batch = Batch.from_data_list(items)
    together = model(batch.x, batch.edge_index, batch=batch.batch)
    apart = torch.cat([model(item.x, item.edge_index) for item in items])
    torch.testing.assert_close(together, apart, rtol=1e-12, atol=1e-12)
    more = model(batch.x, batch.edge_index, batch=batch.batch, batch_size=6)
    torch.testing.assert_close(more[:4], apart, rtol=1e-12, atol=1e-12)
    empty = model.head(torch.zeros(1, 4, dtype=torch.float64))
    torch.testing.assert_close(more[4:], empty.expand(2, -1))


def test_numbering_of_the_nodes_does_not_matter():
    rng = np.random.default_rng(3)
    order = torch.tensor([3, 0, 4, 1, 2])
    x, index, weights = tensors(
        rng.normal(size=(5, 3)), [(0, 1), (1, 2), (2, 0), (3, 3), (0, 1)], rng.normal(size=5)
    )
    where = order.argsort()
    for task in ("node", "graph"):
        model = randomised(PolyGIN(3, 2, hidden_channels=4, task=task).double(), 4)
        before = model(x, index, edge_weight=weights)
        after = model(x[order], where[index], edge_weight=weights)
        torch.testing.assert_close(after, before[order] if task == "node" else before, rtol=1e-12, atol=1e-12)


def test_duplicate_edges_add_and_a_self_loop_stands_beside_eps():
    x = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    model = randomised(PolyGIN(1, 2, hidden_channels=3, task="node").double(), 2)
    twice = model(x, torch.tensor([[0, 0], [1, 1]]))
    weighted = model(x, torch.tensor([[0], [1]]), edge_weight=torch.tensor([2.0], dtype=torch.float64))
    torch.testing.assert_close(twice, weighted, rtol=1e-13, atol=0)
    looped = model(x, torch.tensor([[0, 1], [0, 1]]))
    for conv in model.convs:
        conv.eps += 1
    torch.testing.assert_close(looped, model(x, torch.empty(2, 0, dtype=torch.long)), rtol=1e-13, atol=0)


def test_parameters_return_to_their_start():
    model = randomised(PolyGIN(3, 2, hidden_channels=4, eps=0.5, train_eps=True, theta_init=0.2), 7)
    model.reset_parameters()
    for conv in model.convs:
        assert torch.equal(conv.norm.scale, torch.ones(4))
        assert conv.act.theta.item() == pytest.approx(0.2)
        assert conv.eps.item() == pytest.approx(0.5)
    torch.manual_seed(0)
    model.reset_parameters()
    first = [p.clone() for p in model.parameters()]
    torch.manual_seed(0)
    model.reset_parameters()
    assert all(torch.equal(a, b) for a, b in zip(first, model.parameters(), strict=True))
    gin = randomised(GIN(3, 2, hidden_channels=4), 7)
    before = [p.clone() for p in gin.parameters()]
    gin.reset_parameters()
    assert not any(torch.equal(a, b) for a, b in zip(before, gin.parameters(), strict=True))


def test_parts_by_hand():
    z = torch.tensor([[1.0, -2.0]])
    act = PolyActivation(2)
    with torch.no_grad():
        act.theta.copy_(torch.tensor([0.5, 0.25]))
    assert act(z).tolist() == [[1.5, -1.0]]
    assert "per channel" in repr(act)
    assert "scalar" in repr(PolyActivation())
    norm = PolyScaleNorm(2, bias=True)
    with torch.no_grad():
        norm.scale.copy_(torch.tensor([2.0, 3.0]))
        norm.bias.copy_(torch.tensor([1.0, 0.0]))
    assert norm(z).tolist() == [[3.0, -6.0]]
    norm.reset_parameters()
    assert norm(z).tolist() == z.tolist()


@pytest.mark.parametrize("option", [{"task": "edge"}, {"readout": "max"}, {"theta": "matrix"}])
def test_choices_are_closed(option):
    with pytest.raises(InputError, match="expected one of"):
        PolyGIN(3, 2, **option)


@pytest.mark.parametrize("cls", [PolyGIN, GIN])
@pytest.mark.parametrize("sizes", [(0, 2, 3, 1), (3, -1, 3, 1), (3, 2, 0, 1), (3, 2, 3, -1)])
def test_sizes_must_count(cls, sizes):
    inside, out, hidden, layers = sizes
    with pytest.raises(InputError, match="at least"):
        cls(inside, out, hidden_channels=hidden, num_layers=layers)
