"""What PolyGIN can tell apart: no more than 1-WL (Proposition 1), and no less where Proposition 2 holds."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from apexgnn.errors import GraphError, InputError
from apexgnn.nn import GIN, PolyGIN, injectivity_report
from oracles.colours import BICYCLOPENTYL, DECALIN, HEXAGON, TWO_TRIANGLES, both_ways, cycle, refine


def graph(nodes, edges, x=None):
    index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    return Data(x=torch.ones(nodes, 1, dtype=torch.float64) if x is None else x, edge_index=index)


def drawn(model, seed, scale=0.5):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * scale)
    return model.eval()


@st.composite
def labelled_graphs(draw):
    """A graph with node labels, often with symmetries: a few copies of a small graph, its nodes shuffled."""
    nodes, copies = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    edges = draw(st.lists(st.tuples(*[st.integers(0, nodes - 1)] * 2), max_size=8))
    labels = draw(st.lists(st.integers(0, 1), min_size=nodes, max_size=nodes)) * copies
    every = [(u + nodes * copy, v + nodes * copy) for copy in range(copies) for u, v in edges]
    order = draw(st.permutations(range(nodes * copies)))
    return [labels[i] for i in np.argsort(order)], [(order[u], order[v]) for u, v in every]


@settings(deadline=None, max_examples=60)
@given(labelled_graphs(), st.integers(0, 4), st.integers(0, 1000))
def test_proposition_1_equal_colours_get_equal_representations(labelled, layers, seed):
    labels, edges = labelled
    model = PolyGIN(2, 3, hidden_channels=4, num_layers=layers, task="node", theta="channel", eps=0.25)
    data = graph(len(labels), edges, torch.eye(2, dtype=torch.float64)[labels])
    out = drawn(model.double(), seed)(data.x, data.edge_index)
    colours = refine(labels, edges, layers)[-1]
    scale = float(out.detach().abs().max())
    for node, colour in enumerate(colours):
        torch.testing.assert_close(out[node], out[colours.index(colour)], rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize(
    "first, second, nodes",
    [
        (TWO_TRIANGLES, HEXAGON, 6),
        (DECALIN, BICYCLOPENTYL, 10),
        (both_ways(cycle(4) + cycle(4, 4)), both_ways(cycle(8)), 8),
    ],
    ids=["triangles-hexagon", "decalin-bicyclopentyl", "squares-octagon"],
)
@pytest.mark.parametrize("readout", ["mean", "sum"])
def test_proposition_1_on_the_classic_pairs(first, second, nodes, readout):
    for seed in range(5):
        model = drawn(PolyGIN(1, 2, hidden_channels=8, readout=readout, eps=0.125).double(), seed)
        one, other = (model(data.x, data.edge_index) for data in (graph(nodes, first), graph(nodes, second)))
        torch.testing.assert_close(one, other, rtol=1e-11, atol=0)


def test_what_1_wl_tells_apart_a_generic_polygin_does_too():
    """A path and a star, a triangle with a tail and a square: other colours, so other outputs."""
    pairs = [
        (both_ways([(0, 1), (1, 2), (2, 3)]), both_ways([(0, 1), (0, 2), (0, 3)])),
        (both_ways([*cycle(3), (0, 3)]), both_ways(cycle(4))),
    ]
    model = drawn(PolyGIN(1, 2, hidden_channels=8, readout="sum", eps=0.125).double(), 0)
    for first, second in pairs:
        one, other = (model(data.x, data.edge_index) for data in (graph(4, first), graph(4, second)))
        assert bool(((one - other).abs() > 1e-3).all())


@settings(deadline=None, max_examples=60)
@given(labelled_graphs(), st.integers(0, 1000), st.sampled_from([0.02, 0.1, 0.5]))
def test_proposition_2_where_the_report_says_yes_nothing_is_merged(labelled, seed, scale):
    labels, edges = labelled
    data = graph(len(labels), edges, torch.eye(2, dtype=torch.float64)[labels])
    model = drawn(
        PolyGIN(2, 2, hidden_channels=6, num_layers=2, theta="channel", eps=0.25).double(), seed, scale
    )
    report = injectivity_report(model, data)
    colours = refine(labels, edges, 2)
    for depth, layer in enumerate(report.layers, start=1):
        aggregated = layer.distinct[0]
        assert aggregated <= len(set(colours[depth])), "an aggregation cannot beat 1-WL"
        assert layer.injective or not layer.holds
        assert (layer.margin > 0) == (layer.max_theta < 1 / (2 * layer.bound))


SQUARE_WITH_TAIL = graph(6, both_ways([*cycle(4), (0, 4), (4, 5)]))


def small_model(seed=0):
    """Weights small enough for Proposition 2 to hold."""
    model = drawn(PolyGIN(1, 2, hidden_channels=5, num_layers=2, eps=0.125).double(), seed, 0.3)
    with torch.no_grad():
        for conv in model.convs:
            conv.act.theta.fill_(0.01)
            conv.norm.scale.fill_(0.5)
    return model


def test_the_report_by_hand():
    """One layer, W₁ = 2, s = 3, θ = 0.01 over degrees 1, 2, 3: a = 1 + degree, so B = 6·4 = 24."""
    model = PolyGIN(1, 2, hidden_channels=1, num_layers=1).double()
    with torch.no_grad():
        conv = model.convs[0]
        for tensor, value in [(conv.lin1.weight, 2), (conv.lin1.bias, 0), (conv.norm.scale, 3)]:
            tensor.fill_(value)
        conv.act.theta.fill_(0.01)
        conv.lin2.weight.fill_(-1)
    (layer,) = injectivity_report(model, SQUARE_WITH_TAIL).layers
    assert (layer.bound, layer.max_theta, layer.limit) == (24, 0.01, 1 / 48)
    assert layer.margin == pytest.approx(1 / 48 - 0.01)
    assert (layer.zero_scales, layer.distinct) == (0, (3, 3, 3, 3))
    assert (layer.rank1, layer.rank2) == ((1, 1), (1, 1))
    assert layer.holds
    assert layer.injective


def test_the_report_says_yes_and_prints():
    report = injectivity_report(small_model(), SQUARE_WITH_TAIL)
    assert report.holds
    colours = refine([0] * 6, [tuple(pair) for pair in SQUARE_WITH_TAIL.edge_index.T.tolist()], 2)
    assert [layer.distinct[0] for layer in report.layers] == [len(set(c)) for c in colours[1:]]
    text = str(report)
    assert text.startswith("The conditions of Proposition 2 hold in every layer.")
    assert len(text.splitlines()) == 4


def test_without_w2_the_report_says_no():
    model = small_model()
    with torch.no_grad():
        model.convs[1].lin2.weight.zero_()
    report = injectivity_report(model, SQUARE_WITH_TAIL)
    assert not report.holds
    first, second = report.layers
    assert first.holds
    assert second.rank2[1] == 0
    assert second.distinct[-1] == 1
    assert not second.injective
    assert "convs.1: W₂ merges" in str(report)


@pytest.mark.parametrize(
    "change, word",
    [
        (lambda conv: conv.lin1.weight.zero_(), "W₁ merges"),
        (lambda conv: conv.norm.scale[2].zero_(), "1 of the scales s are zero"),
        (lambda conv: conv.act.theta.fill_(50.0), "not below 1/(2B)"),
    ],
)
def test_each_condition_is_named_when_it_fails(change, word):
    model = small_model()
    with torch.no_grad():
        change(model.convs[0])
    report = injectivity_report(model, SQUARE_WITH_TAIL)
    assert not report.holds
    assert word in " ".join(report.layers[0].obstacles)


def test_a_parabola_that_folds_merges_rows_and_the_condition_saw_it():
    """σ(z) = z + θz² has the same value at z and −1/θ − z: two nodes sent there collide."""
    model = PolyGIN(1, 2, hidden_channels=1, num_layers=1).double()
    with torch.no_grad():
        conv = model.convs[0]
        conv.lin1.weight.fill_(1)
        conv.lin1.bias.zero_()
        conv.act.theta.fill_(-0.2)
        conv.lin2.weight.fill_(1)
    data = graph(2, [], torch.tensor([[1.0], [4.0]], dtype=torch.float64))
    (layer,) = injectivity_report(model, data).layers
    assert layer.distinct == (2, 2, 1, 1)
    assert not layer.holds
    assert not layer.injective


def test_rank_sees_a_direction_that_is_lost_before_any_two_rows_meet():
    model = drawn(PolyGIN(2, 2, hidden_channels=3, num_layers=1).double(), 0, 0.1)
    with torch.no_grad():
        model.convs[0].lin1.weight[:, 1] = model.convs[0].lin1.weight[:, 0]
    data = graph(3, [], torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], dtype=torch.float64))
    (layer,) = injectivity_report(model, data).layers
    assert layer.distinct[:2] == (3, 3)
    assert layer.rank1 == (2, 1)


def test_rounding_does_not_make_equal_rows_differ():
    """Sums taken in another order differ in the last digits; isomorphic nodes still count as one row."""
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(8, 3)))
    items = []
    for _ in range(6):
        order = torch.tensor(rng.permutation(8))
        edges = torch.tensor(both_ways([(0, i) for i in range(1, 8)])).T
        items.append(Data(x=x[order], edge_index=order.argsort()[edges]))
    model = drawn(PolyGIN(3, 2, hidden_channels=4, num_layers=3, eps=0.3).double(), 1, 0.3)
    for layer in injectivity_report(model, Batch.from_data_list(items)).layers:
        assert layer.distinct[0] == 8


def test_edge_weights_count_and_the_model_stays_as_it_was():
    data = graph(2, [(0, 1)])
    weighted = Data(x=data.x, edge_index=data.edge_index, edge_weight=torch.tensor([3.0]))
    model = small_model().float().train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    plainly, heavier = (injectivity_report(model, d).layers[0].bound for d in (data, weighted))
    assert heavier != plainly
    assert model.training
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(value.dtype is torch.float32 for value in model.state_dict().values())


def test_a_single_node_and_zero_features():
    report = injectivity_report(drawn(PolyGIN(1, 2, hidden_channels=3).double(), 0), graph(1, []))
    assert report.layers[0].distinct[0] == 1
    assert report.layers[0].rank1 == (0, 0)
    model = PolyGIN(1, 2, hidden_channels=3, num_layers=1).double()
    torch.nn.init.zeros_(model.convs[0].lin1.bias)
    (layer,) = injectivity_report(model, graph(2, [], torch.zeros(2, 1, dtype=torch.float64))).layers
    assert (layer.bound, layer.limit) == (0, float("inf"))
    assert layer.holds


def test_bad_input_is_named():
    with pytest.raises(InputError, match="a GIN"):
        injectivity_report(GIN(1, 2), SQUARE_WITH_TAIL)
    for x in (None, torch.ones(6, 2), torch.ones(0, 1), torch.ones(6)):
        with pytest.raises(GraphError, match=r"data\.x"):
            injectivity_report(PolyGIN(1, 2), Data(x=x, edge_index=SQUARE_WITH_TAIL.edge_index))
    with pytest.raises(GraphError, match="NaN"):
        injectivity_report(PolyGIN(1, 2), graph(1, [], torch.tensor([[torch.nan]])))


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"edge_index": torch.tensor([[7], [0]])}, GraphError, "nodes 7 … 7|nodes 0 … 7"),
        ({"edge_index": torch.tensor([[0], [-1]])}, GraphError, "nodes -1 … 0"),
        ({"edge_index": None}, GraphError, "edge_index.*NoneType"),
        ({"edge_weight": torch.ones(3)}, GraphError, "one for each edge"),
        ({"edge_weight": torch.full((2,), float("nan"))}, GraphError, "edge_weight.*NaN"),
        ({"x": torch.full((2, 1), float("inf"))}, GraphError, "data.x.*infinite"),
        ({}, InputError, "infinite weights"),
    ],
)
def test_report_refuses_what_has_no_answer(changes, error, message):
    model, data = PolyGIN(1, 2, hidden_channels=3), graph(2, [(0, 1), (1, 0)])
    if not changes:
        with torch.no_grad():
            model.convs[0].act.theta.fill_(float("inf"))
    for name, value in changes.items():
        data[name] = value
    with pytest.raises(error, match=message):
        injectivity_report(model, data)
