"""Exact attribution against plain autograd, its axioms, and the certificate's tightness."""

import warnings

import pytest
import torch
from torch_geometric.data import Data

import apexgnn
from apexgnn.nn import PolyGIN
from explain.nets import Stack, batch, generic, graph, poly_gin, reference


def error(a, b):
    return float((a - b).abs().max() / b.abs().max())


def scale(result):
    return float((result.score.abs() + result.baseline_score.abs()).max() + result.features.abs().sum())


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5, 6])
def test_certificate_of_l_blocks(blocks):
    certificate = apexgnn.certify(poly_gin(num_layers=blocks - 1, hidden_channels=5), graph())
    assert certificate.degree == 2**blocks
    assert certificate.points == 2 ** (blocks - 1)


def test_preset_against_64_points_of_plain_autograd():
    model = generic(PolyGIN(14, 2), theta=0.5).double().eval()
    data = graph(30, 14, 64)
    result = apexgnn.attribute(model, data)
    assert (result.certificate.degree, result.certificate.points, result.evaluations) == (16, 8, 8)
    assert error(result.features, reference(model, data, int(result.target), points=64)) <= 1e-12


@pytest.mark.parametrize("blocks", [2, 3, 4])
def test_one_point_fewer_fails(blocks):
    """With θ of order one the certified number of points is needed: one fewer loses at least 10³."""
    model, data = poly_gin(num_layers=blocks - 1, theta=2.0), graph()
    result = apexgnn.attribute(model, data)
    points, target = result.certificate.points, int(result.target)
    truth = reference(model, data, target, points=64)
    enough = max(error(result.features, truth), 1e-16)
    assert enough < 1e-13
    assert error(reference(model, data, target, points=points - 1), truth) > 1e3 * enough


BASELINES = {
    "zero": None,
    "a number": 0.7,
    "one row": torch.linspace(-1, 1, 5),
    "anything": torch.randn(12, 5, generator=torch.Generator().manual_seed(3)),
}


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 5e-6)])
@pytest.mark.parametrize("index", [None, 3])
def test_completeness(name, dtype, tolerance, index):
    model = poly_gin(dtype=dtype, task="graph" if index is None else "node")
    data = graph(dtype=dtype)
    result = apexgnn.attribute(model, data, baseline=BASELINES[name], index=index)
    assert result.features.dtype == dtype
    assert float(result.residual.abs().max()) <= tolerance * scale(result)
    total = result.features.double().sum() - (result.score - result.baseline_score).double().sum()
    assert float(total.abs()) <= tolerance * scale(result)


@pytest.mark.parametrize("target", [None, 0, 2])
@pytest.mark.parametrize("readout", ["mean", "sum"])
def test_batch_is_one_by_one(target, readout):
    model, data = poly_gin(readout=readout), batch()
    together = apexgnn.attribute(model, data, target=target)
    alone = [apexgnn.attribute(model, one, target=target) for one in data.to_data_list()]
    torch.testing.assert_close(
        together.features, torch.cat([r.features for r in alone]), rtol=1e-10, atol=1e-13
    )
    for field in ("score", "baseline_score", "target"):
        torch.testing.assert_close(getattr(together, field), torch.cat([getattr(r, field) for r in alone]))
    assert together.residual.shape == together.condition.shape == (4,)


def test_one_target_per_graph():
    model, data = poly_gin(), batch()
    targets = torch.tensor([0, 2, 1, 0])
    together = apexgnn.attribute(model, data, target=targets)
    for k, one in enumerate(data.to_data_list()):
        alone = apexgnn.attribute(model, one, target=int(targets[k]))
        part = together.features[data.batch == k]
        torch.testing.assert_close(part, alone.features, rtol=1e-10, atol=1e-13)


def test_permuted_nodes_permute_the_result():
    model, data = poly_gin(), graph()
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    where = torch.argsort(order)
    moved = Data(x=data.x[order], edge_index=where[data.edge_index])
    torch.testing.assert_close(
        apexgnn.attribute(model, moved).features,
        apexgnn.attribute(model, data).features[order],
        rtol=1e-10,
        atol=1e-13,
    )


def test_dummy_and_linearity():
    """A feature that no weight reads gets nothing; the attribution of a sum of scores is the sum."""
    model, data = poly_gin(), graph()
    with torch.no_grad():
        model.convs[0].lin1.weight[:, 2] = 0
    result = [apexgnn.attribute(model, data, target=c).features for c in range(3)]
    assert float(result[0][:, 2].abs().max()) == 0
    with torch.no_grad():
        model.head[3].weight[0] = model.head[3].weight[1] + 2 * model.head[3].weight[2]
    combined = apexgnn.attribute(model, data, target=0).features
    torch.testing.assert_close(combined, result[1] + 2 * result[2], rtol=1e-9, atol=1e-12)


def test_symmetric_nodes_share_alike():
    """Two leaves of a star with equal features cannot be told apart."""
    star = Data(
        x=torch.ones(4, 5, dtype=torch.float64),
        edge_index=torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]]),
    )
    nodes = apexgnn.attribute(poly_gin(), star).nodes
    torch.testing.assert_close(nodes[1], nodes[2], rtol=1e-12, atol=1e-15)


def test_implementations_of_one_function_agree():
    """PolyGIN and the same function written otherwise, through PathTensor."""
    model, data = poly_gin(), graph()

    class Rewritten(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x, edge_index, batch=None):
            adjacency = torch.zeros(len(x), len(x), dtype=x.dtype)
            adjacency.index_put_(
                (edge_index[1], edge_index[0]), torch.ones(1, dtype=x.dtype), accumulate=True
            )
            for conv in self.inner.convs:
                z = conv.norm(conv.lin1(adjacency @ x + x))
                x = conv.lin2(z * (1 + conv.act.theta * z))
            return self.inner.head(x.mean(0, keepdim=True))

    torch.testing.assert_close(
        apexgnn.attribute(Rewritten().eval(), data).features,
        apexgnn.attribute(model, data).features,
        rtol=1e-9,
        atol=1e-12,
    )


@pytest.mark.parametrize(
    "kind", ["GINConv", "GCNConv", "SAGEConv", "GraphConv", "ChebConv", "SGConv", "TAGConv"]
)
@pytest.mark.parametrize("task", ["graph", "node"])
def test_unmodified_pyg_models(kind, task):
    options = {"K": 2} if kind == "ChebConv" else {}
    torch.manual_seed(0)
    model = Stack(kind, **({"pool": None} if task == "node" else {}), **options).double().eval()
    data = graph()
    index = 4 if task == "node" else None
    result = apexgnn.attribute(model, data, index=index)
    truth = reference(model, data, int(result.target), points=40, index=index)
    assert error(result.features, truth) < 1e-12
    assert float(result.residual.abs().max()) <= 1e-12 * scale(result)


@pytest.mark.parametrize("aggr", ["sum", "mean"])
def test_aggregations_and_fixed_batch_norm(aggr):
    import torch_geometric.nn as gnn

    norm = gnn.BatchNorm(8)
    norm.module.running_mean.copy_(torch.randn(8))
    norm.module.running_var.copy_(torch.rand(8) + 0.5)
    model = Stack("SAGEConv", aggr=aggr, between=norm, pool=gnn.global_add_pool).double().eval()
    data = graph()
    result = apexgnn.attribute(model, data)
    assert error(result.features, reference(model, data, int(result.target), points=16)) < 1e-12
    assert result.certificate.degree == 4


def test_sparse_adjacency_instead_of_edges():
    from torch_geometric.nn import GCNConv

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(5, 2, normalize=False).double()

        def forward(self, x, edge_index, batch=None):
            adjacency = torch.sparse_coo_tensor(
                edge_index.flip(0), torch.ones(edge_index.size(1)).double(), (12, 12)
            )
            return self.conv(x * x, adjacency.coalesce().to_sparse_csr()).sum(0, keepdim=True)

    with torch.sparse.check_sparse_tensor_invariants(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls its sparse layouts beta
        result = apexgnn.attribute(Net().eval(), graph())
    assert result.certificate.points == 1
    assert float(result.residual.abs()) < 1e-12 * scale(result)


def test_call_for_other_signatures():
    model, data = poly_gin(), graph()
    wrapped = apexgnn.attribute(
        torch.nn.ModuleDict({"inner": model}), data, call=lambda m, d: m["inner"](d.x, d.edge_index)
    )
    torch.testing.assert_close(
        wrapped.features, apexgnn.attribute(model, data).features, rtol=1e-9, atol=1e-12
    )
    assert wrapped.certificate.trace[0].module == "inner"


def test_a_changed_model_gets_a_new_certificate():
    """The degree seen last time is only a guess: a pass that finds another one runs again."""
    data = graph()
    model = Stack("GraphConv").double().eval()
    assert apexgnn.attribute(model, data).evaluations == 2
    model.between = Stack("GraphConv").act.double()
    model.between = torch.nn.Sequential(model.between, type(model.act)(8).double())
    result = apexgnn.attribute(model, data)
    assert result.evaluations == 8
    assert error(result.features, reference(model, data, int(result.target), points=40)) < 1e-12
    model.between = torch.nn.Identity()
    assert apexgnn.attribute(model, data).evaluations == 2


def test_condition_number_and_equal_ends():
    """Shares that cancel are reported as ill-conditioned, and nothing is divided by f(X) − f(X′) = 0."""
    model, data = poly_gin(), graph()
    result = apexgnn.attribute(model, data)
    expected = result.features.abs().sum() / result.features.sum().abs()
    torch.testing.assert_close(result.condition[0], expected)
    same = apexgnn.attribute(model, data, baseline=data.x)
    assert float(same.features.abs().max()) == 0
    assert float(same.residual) == 0
    assert torch.isnan(same.condition).all()


def test_edge_weights_reach_the_model():
    model, data = poly_gin(), graph()
    plain = apexgnn.attribute(model, data).features
    data.edge_weight = torch.rand(30, dtype=torch.float64)
    weighted = apexgnn.attribute(model, data)
    assert not torch.allclose(weighted.features, plain)
    assert float(weighted.residual.abs()) < 1e-12 * scale(weighted)
    data.edge_weight = torch.ones(30, dtype=torch.float64)
    torch.testing.assert_close(apexgnn.attribute(model, data).features, plain, rtol=1e-9, atol=1e-12)


def test_one_node_in_each_graph_of_a_batch():
    model, data = poly_gin(task="node"), batch()
    index = data.ptr[:-1] + torch.tensor([0, 2, 1, 4])
    together = apexgnn.attribute(model, data, index=index)
    for k, one in enumerate(data.to_data_list()):
        alone = apexgnn.attribute(model, one, index=int(index[k] - data.ptr[k]))
        torch.testing.assert_close(together.features[data.batch == k], alone.features, rtol=1e-10, atol=1e-13)
        torch.testing.assert_close(together.score[k], alone.score[0])


@pytest.mark.parametrize("task", ["graph", "node"])
def test_memory_bound_takes_a_batch_in_parts(task):
    model, data = Stack("GCNConv", **({"pool": None} if task == "node" else {})).double().eval(), batch(12)
    index = data.ptr[:-1] + 3 if task == "node" else None
    whole = apexgnn.attribute(model, data, index=index)
    widths = []
    handle = model.head.register_forward_pre_hook(lambda m, args: widths.append(len(args[0])))
    parts = apexgnn.attribute(model, data, index=index, memory=300_000)
    handle.remove()
    assert min(widths) < max(widths)
    torch.testing.assert_close(parts.features, whole.features, rtol=1e-10, atol=1e-13)
    with pytest.raises(apexgnn.MemoryBudgetError, match=r"16 nodes needs about .* MiB.*raise memory="):
        apexgnn.attribute(model, data, index=index, memory=10_000)


def test_a_part_of_a_batch_has_the_fields_of_its_graphs():
    model, data = Stack("GCNConv").double().eval(), batch(12)
    data.u, data.own = torch.rand(12, 3).double(), torch.rand(data.num_nodes, 1).double()
    data.edge_attr = torch.rand(data.num_edges).double()

    def call(m, d):
        x = d.x.new_zeros(d.x.shape).index_add(
            0, d.edge_index[1], d.x[d.edge_index[0]] * d.edge_attr[:, None]
        )
        scores = m(x + d.x * d.own, d.edge_index, d.batch) + d.u
        assert len(scores) == d.num_graphs
        return scores * d.ptr.diff().view(-1, 1)

    whole = apexgnn.attribute(model, data, call=call)
    parts = apexgnn.attribute(model, data, call=call, memory=300_000)
    torch.testing.assert_close(parts.features, whole.features, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", ["PolyGIN", "SAGEConv"])
def test_one_point_more_changes_nothing(kind):
    """Anyone can test a certificate: what is exact with m points is the same with m + 1."""
    model = poly_gin(theta=0.7) if kind == "PolyGIN" else Stack(kind).double().eval()
    result = apexgnn.attribute(model, graph())
    more = apexgnn.integrated_gradients(model, graph(), steps=result.certificate.points + 1)
    assert error(more.features, result.features) < 1e-13


def test_edge_weights_reach_a_model_behind_options():
    model, data = poly_gin(), graph()
    data.edge_weight = torch.rand(30, dtype=torch.float64)

    class Behind(torch.nn.Module):
        def forward(self, x, edge_index, **options):
            return model(x, edge_index, **options)

    expected = apexgnn.attribute(model, data)
    found = apexgnn.attribute(Behind(), data)
    torch.testing.assert_close(found.features, expected.features, rtol=1e-9, atol=1e-12)


def test_call_may_widen_the_features():
    """The model's width is then no business of data.x."""
    model, data = poly_gin(7), graph()
    data.pos = torch.ones(12, 2, dtype=torch.float64)
    result = apexgnn.attribute(model, data, call=lambda m, d: m(torch.cat([d.x, d.pos], dim=1), d.edge_index))
    assert result.features.shape == (12, 5)
    assert float(result.residual.abs().max()) <= 1e-12 * scale(result)
