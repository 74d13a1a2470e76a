"""Bad input: each gets a typed error that names the field and says what was expected; what is merely odd works."""

import pytest
import torch
from torch_geometric.data import Batch, Data

import apexgnn
from apexgnn import BaselineError, GraphError, NumericalError, TargetError
from explain.nets import batch, graph, poly_gin

EXPLAIN = [apexgnn.attribute, apexgnn.integrated_gradients]


def spoiled(**changes):
    data = graph()
    for name, change in changes.items():
        data[name] = change(data[name]) if callable(change) else change
    return data


def with_value(value):
    def put(x):
        x = x.clone()
        x[3, 2] = value
        return x

    return put


FAULTS = {
    "NaN features": (spoiled(x=with_value(float("nan"))), r"data\.x.*NaN.*\[3, 2\]"),
    "infinite features": (spoiled(x=with_value(float("inf"))), r"data\.x.*infinite"),
    "no features": (Data(edge_index=torch.zeros(2, 0, dtype=torch.long)), r"data\.x.*NoneType"),
    "no nodes": (spoiled(x=torch.zeros(0, 5).double(), edge_index=torch.zeros(2, 0).long()), "no nodes"),
    "flat features": (spoiled(x=lambda x: x[:, 0]), r"two dimensions"),
    "integer features": (spoiled(x=lambda x: x.long()), r"int64.*data\.x\.float"),
    "half features": (spoiled(x=lambda x: x.half()), "float16"),
    "wrong width": (spoiled(x=lambda x: x[:, :3]), r"3 features.*expected 5"),
    "other dtype than the model": (spoiled(x=lambda x: x.float()), "float32.*the model's dtype"),
    "no edges given": (spoiled(edge_index=None), r"edge_index.*NoneType"),
    "edges transposed": (spoiled(edge_index=lambda e: e.T.contiguous()), r"edge_index.*\[2, E\]"),
    "int32 edges": (spoiled(edge_index=lambda e: e.int()), r"edge_index.*int32.*long"),
    "float edges": (spoiled(edge_index=lambda e: e.double()), "edge_index.*float64"),
    "edge beyond the last node": (spoiled(edge_index=lambda e: e + 1), r"node 12.*below 12"),
    "negative edge": (spoiled(edge_index=lambda e: e - 1), "node -1"),
    "NaN weights": (spoiled(edge_weight=torch.full((30,), torch.nan).double()), "edge_weight.*NaN"),
    "weights of wrong length": (spoiled(edge_weight=torch.ones(3).double()), "edge_weight.*30 edges"),
    "weights as columns": (spoiled(edge_weight=torch.ones(30, 1).double()), r"edge_weight.*\(30, 1\).*\[E\]"),
    "weights in a list": (spoiled(edge_weight=[1.0] * 30), r"edge_weight.*list.*\[E\]"),
    "no graph": ([graph()], r"data: got list; expected a Data or Batch"),
    "weights of another dtype": (spoiled(edge_weight=torch.ones(30)), r"edge_weight.*float32.*float64"),
    "weights that are whole numbers": (spoiled(edge_weight=torch.ones(30).long()), r"edge_weight.*int64"),
    "sparse features": (spoiled(x=lambda x: x.to_sparse()), r"data\.x.*sparse.*dense"),
    "batch in a list": (spoiled(batch=[0] * 12), r"batch.*list.*\[12\]"),
    "batch of wrong length": (spoiled(batch=torch.zeros(3).long()), r"batch.*\[12\]"),
    "float batch": (spoiled(batch=torch.zeros(12)), "batch.*float32"),
    "gap in batch": (spoiled(batch=torch.tensor([0] * 6 + [2] * 6)), "no node of graph 1"),
    "edge between graphs": (spoiled(batch=torch.tensor([0] * 6 + [1] * 6)), "between two graphs"),
    "other device": (spoiled(edge_index=lambda e: e.to("meta")), "edge_index"),
}


@pytest.mark.parametrize("explain", EXPLAIN)
@pytest.mark.parametrize("fault", FAULTS)
def test_malformed_graph(explain, fault):
    data, message = FAULTS[fault]
    with pytest.raises(GraphError, match=message):
        explain(poly_gin(), data)


def test_width_unlike_that_of_any_model():
    from explain.nets import Stack

    with pytest.raises(GraphError, match=r"3 features.*cannot be multiplied"):
        apexgnn.attribute(Stack("GCNConv").double().eval(), spoiled(x=lambda x: x[:, :3]))


@pytest.mark.parametrize(
    "baseline, message",
    [
        (torch.zeros(4), r"\[4\].*\[F\] = \[5\]"),
        (torch.zeros(5, 12), r"\[N, F\] = \[12, 5\]"),
        (float("nan"), "NaN"),
        (torch.full((5,), float("inf")), "infinite"),
        ("zeros", "'zeros'"),
        (torch.ones(5) * 1j, "complex64"),
        (object(), "object"),
    ],
)
@pytest.mark.parametrize("explain", EXPLAIN)
def test_baseline(explain, baseline, message):
    with pytest.raises(BaselineError, match=message):
        explain(poly_gin(), graph(), baseline=baseline)


@pytest.mark.parametrize(
    "target", [3, -1, 1.0, 1j, 2**70, "toxic", torch.tensor([0, 1]), torch.tensor(float("nan")), True]
)
@pytest.mark.parametrize("explain", EXPLAIN)
def test_target(explain, target):
    with pytest.raises(TargetError, match="target"):
        explain(poly_gin(), graph(), target=target)


@pytest.mark.parametrize("index", [12, -1, 1.5, 1j, True, [], "first", torch.tensor([1, 2])])
def test_index(index):
    with pytest.raises(TargetError, match="index"):
        apexgnn.attribute(poly_gin(task="node"), graph(), index=index)


@pytest.mark.parametrize("explain", EXPLAIN)
def test_no_model_and_no_memory(explain):
    with pytest.raises(apexgnn.InputError, match="model: got str"):
        explain("model.pt", graph())
    for memory in (0, "1 GB", float("nan"), float("inf")):
        with pytest.raises(apexgnn.InputError, match="memory"):
            explain(poly_gin(), graph(), memory=memory)


@pytest.mark.parametrize("draws", [0, 1.5])
def test_draws_must_count(draws):
    with pytest.raises(BaselineError, match="draws"):
        apexgnn.Permutation(draws)


@pytest.mark.parametrize("explain", [*EXPLAIN, apexgnn.certify])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_graph_without_nodes_anywhere_in_a_batch(explain, place):
    graphs = [graph(), graph(seed=1)]
    graphs.insert(place, Data(x=torch.zeros(0, 5).double(), edge_index=torch.zeros(2, 0).long()))
    with pytest.raises(GraphError, match=f"no node of graph {place}"):
        explain(poly_gin(), Batch.from_data_list(graphs))


@pytest.mark.parametrize("explain", EXPLAIN)
@pytest.mark.parametrize("wrap", [lambda out: (out, None), lambda out: {"logits": out}])
def test_an_output_that_is_no_tensor(explain, wrap):
    model = poly_gin()
    with pytest.raises(apexgnn.ApexError, match=r"output.*(tuple|dict)"):
        explain(lambda x, e, batch: wrap(model(x, e, batch)), graph())


def test_node_model_without_index_and_the_reverse():
    model = poly_gin(task="node")
    with pytest.raises(apexgnn.InputError, match="index="):
        apexgnn.attribute(lambda x, e, batch: model(x, e), graph())
    with pytest.raises(apexgnn.InputError, match="leave index out"):
        apexgnn.attribute(poly_gin(), graph(), index=0)


def complete(result, tolerance=1e-12):
    size = float((result.score.abs() + result.baseline_score.abs()).sum() + result.features.abs().sum())
    return float(result.residual.abs().max()) <= tolerance * size


def test_no_edges_and_isolated_nodes():
    empty = torch.zeros(2, 0, dtype=torch.long)
    lonely = Data(x=torch.randn(3, 5).double(), edge_index=empty)
    assert complete(apexgnn.attribute(poly_gin(), lonely))
    mixed = Batch.from_data_list([lonely, graph(), Data(x=torch.randn(1, 5).double(), edge_index=empty)])
    result = apexgnn.attribute(poly_gin(), mixed)
    assert complete(result)
    torch.testing.assert_close(
        result.features[:3], apexgnn.attribute(poly_gin(), lonely).features, rtol=1e-9, atol=1e-13
    )


def test_self_loops_and_duplicate_edges_count():
    """A self-loop adds the node once more beside 1 + ε, and an edge given twice counts twice."""
    x = torch.randn(2, 5, generator=torch.Generator().manual_seed(2)).double()
    edges = torch.tensor([[0, 0], [0, 1]])
    twice = Data(x=x, edge_index=torch.cat([edges, edges], dim=1))
    weighted = Data(x=x, edge_index=edges, edge_weight=torch.full((2,), 2.0).double())
    once = Data(x=x, edge_index=edges)
    a, b, c = (apexgnn.attribute(poly_gin(), d) for d in (twice, weighted, once))
    torch.testing.assert_close(a.features, b.features, rtol=1e-10, atol=1e-14)
    assert not torch.allclose(a.features, c.features)
    assert complete(a)


def test_directed_graph_sends_credit_backwards():
    """In 0 → 1 → 2 the score of node 0 owes nothing to the others, that of node 2 something to all."""
    chain = Data(x=torch.ones(3, 5).double(), edge_index=torch.tensor([[0, 1], [1, 2]]))
    first, last = (apexgnn.attribute(poly_gin(task="node"), chain, index=i) for i in (0, 2))
    assert float(first.features[1:].abs().max()) == 0
    assert float(last.nodes.abs().min()) > 0


def test_hub_of_degree_100000():
    n = 100_001
    hub = Data(
        x=torch.full((n, 2), 1e-3).double(),
        edge_index=torch.stack([torch.arange(1, n), torch.zeros(n - 1).long()]),
    )
    result = apexgnn.attribute(poly_gin(2, hidden_channels=4, num_layers=1, readout="sum"), hub)
    assert complete(result, tolerance=n * torch.finfo(torch.float64).eps)  # a sum of n terms rounds n times


def test_overflow_is_detected_and_float64_offered():
    data = graph(dtype=torch.float32)
    data.x = data.x * 1e6
    with pytest.raises(NumericalError, match=r"float32.*float64"):
        apexgnn.attribute(poly_gin(dtype=torch.float32), data)
    data.x = data.x.double()
    assert torch.isfinite(apexgnn.attribute(poly_gin(), data).features).all()


def test_shares_whose_sum_overflows_are_not_returned():
    """Each share is a float32, and the score is, but Σ|φ| is not."""
    data = Data(x=torch.ones(4, 1), edge_index=torch.zeros(2, 0).long())
    signs = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]]) * 3e38
    with pytest.raises(NumericalError, match=r"float32.*float64"):
        apexgnn.attribute(lambda x, e, batch: (signs * x).sum(0, keepdim=True), data)


def test_batch_of_graphs_with_a_trailing_lonely_one():
    data = batch()
    assert apexgnn.attribute(poly_gin(), data).score.shape == (4,)
