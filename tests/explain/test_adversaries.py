"""Models that try to slip through: each comes out exact, or is refused; nothing wrong is ever returned.

What is exact is compared with 64-point Gauss–Legendre in plain autograd, on a fresh copy of the model at every
point, and its certified degree with the differences of the score along the path.
"""

import copy
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv, MessagePassing, SGConv, global_mean_pool
from torch_geometric.utils import dropout_edge

import apexgnn
from apexgnn import NotPolynomialError, NumericalError
from explain.nets import batch as make_batch
from explain.nets import graph

NODES, WIDTH = 12, 5
W = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
V = W[0]
COLUMNS = torch.arange(WIDTH) % 2 == 0
TALL = torch.rand(2, NODES, WIDTH, generator=torch.Generator().manual_seed(2)) > 0.5
BLOCKS = torch.arange(10, dtype=torch.float64)


class Net(nn.Module):
    """Any function of x and the edges, summed to two scores."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.lin = nn.Linear(WIDTH, 2, dtype=torch.float64)

    def forward(self, x, edge_index, batch=None):
        return self.lin(self.function(x, edge_index).reshape(-1, WIDTH)).sum(0, keepdim=True)


def plain_score(model, x, edge_index):
    return copy.deepcopy(model)(x * 1.0, edge_index.clone(), batch=torch.zeros(len(x)).long())[0, 1]


def check_exact(model, data, degree):
    start = torch.randn(data.x.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    before = data.clone()
    result = apexgnn.attribute(model, data, baseline=start, target=1)
    assert apexgnn.certify(model, data).degree == result.certificate.degree == degree
    assert torch.equal(data.x, before.x)
    assert torch.equal(data.edge_index, before.edge_index)

    taus = (1 + np.cos(np.pi * np.arange(degree + 2) / (degree + 1))) / 2
    with torch.no_grad():
        values = np.array(
            [float(plain_score(model, start + t * (data.x - start), data.edge_index)) for t in taus]
        )
    weights = (-1.0) ** np.arange(degree + 2)
    weights[[0, -1]] /= 2
    assert abs(weights @ values) <= 1e-11 * (degree + 2) * (1 + np.abs(values).max())
    torch.testing.assert_close(float(result.score), values[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(float(result.baseline_score), values[-1], rtol=1e-12, atol=1e-12)

    mean = torch.zeros_like(data.x)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    for t, w in zip((nodes + 1) / 2, weights / 2, strict=True):
        point = (start + t * (data.x - start)).requires_grad_()
        mean += w * torch.autograd.grad(plain_score(model, point, data.edge_index), point)[0]
    truth = (data.x - start) * mean
    assert float((result.features - truth).abs().max()) <= 1e-12 * float(truth.abs().max())


def written_into(x, edges):
    y = x
    y += 1
    return y * x


def edges_written_into(x, edges):
    edges[0] = (edges[0] + 1) % NODES
    return x.new_zeros(x.shape).index_add(0, edges[1], x[edges[0]] * x[edges[1]])


def contiguous(x, edges):
    """torch copies here, as the product of transposed tensors is transposed."""
    y = x.t() * x.t()
    z = y.contiguous()
    z += 1
    return (y * 2 + z).t()


def positive(x, edges):
    y = x * 2
    z = +y
    z += 1
    return y * z


def written_after_a_cast(x, edges):
    y = x.new_zeros(x.shape)
    z = y.type_as(x)
    y += x
    return z + y * y


def written_after_out(x, edges):
    buffer = torch.zeros(x.shape, dtype=x.dtype)
    y = torch.add(x.new_ones(x.shape), 1, out=buffer)
    y += x
    return buffer * x + y


def written_into_a_lent_buffer(x, edges):
    y = buffer = torch.zeros(x.shape, dtype=x.dtype)
    y += x.new_ones(x.shape)
    y += x
    return buffer * x + y


def narrow_source(x, edges):
    return x.scatter_add(0, edges[1][:NODES].view(-1, 1), (x * x)[:, :1])


def short_index(x, edges):
    return x.new_zeros(x.shape).scatter_add(0, edges[1][:4].view(-1, 1).expand(4, 2), (x * x)[:4, :2])


def knn(x, edges):
    nearest = (x[:, None] - x[None]).square().sum(-1).argsort(1)[:, 1]
    return x[nearest]


def dropped_edges(x, edges):
    kept = dropout_edge(edges, 0.5)[0]
    return x.new_zeros(x.shape).index_add(0, kept[1], x[kept[0]])


FUNCTIONS = {  # name: (function, its degree, or the operation that is refused)
    "written into": (written_into, 2),
    "edges written into": (edges_written_into, 2),
    "contiguous": (contiguous, "add_"),
    "positive": (positive, 2),
    "cast constant": (written_after_a_cast, 2),
    "constant from out=": (written_after_out, "add_"),
    "constant in a lent buffer": (written_into_a_lent_buffer, "add_"),
    "where, a taller condition": (lambda x, e: torch.where(TALL, x * x, x), 2),
    "Tensor.where": (lambda x, e: x.where(COLUMNS, x * x), 2),
    "where by value": (lambda x, e: torch.where(x > 0, x, x * x), "gt"),
    "F.batch_norm": (lambda x, e: F.batch_norm(x, V, V * V + 1, V, V), 1),
    "torch.batch_norm": (
        lambda x, e: torch.batch_norm(x, V, V, V, V * V, False, 0.1, 1e-5, False),
        "batch_norm",
    ),
    "batch_norm, moving scale": (lambda x, e: F.batch_norm(x, V, V * V + 1, x.sum(0)), "batch_norm"),
    "batch_norm, moving mean": (lambda x, e: F.batch_norm(x, x.mean(0), V * V + 1), "batch_norm"),
    "scatter_add, narrow source": (narrow_source, 2),
    "scatter_add, short index": (short_index, 2),
    "index apart": (lambda x, e: x.view(2, 6, 5)[(0, 1), :, (1, 2)].reshape(-1)[:10] * BLOCKS, 1),
    "index apart, numpy": (
        lambda x, e: x.view(2, 6, 5)[np.array([0, 1]), :, np.array([1, 2])].reshape(-1)[:10] * BLOCKS,
        1,
    ),
    "T of three dimensions": (
        lambda x, e: x.view(2, 6, 5).permute(2, 1, 0).mT.permute(1, 2, 0) * x.view(2, 6, 5),
        2,
    ),
    "sum over no dimensions": (lambda x, e: x.sum([]) * x, 2),
    "named arguments": (lambda x, e: torch.sum(input=x, dim=0) * x, 2),
    "unknown arguments": (lambda x, e: torch.mul(x, other=x), "mul"),
    "join with nothing": (lambda x, e: torch.cat([torch.tensor([]), x * x]), 2),
    "linear of a moving bias": (lambda x, e: F.linear(W, W, x[0]), 1),
    "einsum, one tensor thrice": (lambda x, e: torch.einsum("nf,nf,mf->nf", x, x, x), 3),
    "matmul of the path with itself": (lambda x, e: x @ x.T @ x, 3),
    "attention without softmax": (lambda x, e: (x @ x.T / 5) ** 2 @ x, 5),
    "bilinear": (lambda x, e: F.bilinear(x, x * x, W.expand(5, 5, 5), V), 3),
    "divided by a constant": (lambda x, e: x * x / torch.exp(torch.ones_like(x)), 2),
    "divided by x⁰": (lambda x, e: x / (x**0 + 1), 1),
    "power by a tensor": (lambda x, e: x.pow(torch.tensor(3.0)), 3),
    "power by several": (lambda x, e: x.pow(torch.arange(5.0)), "pow"),
    "root": (lambda x, e: (x * x + 1) ** 0.5, "pow"),
    "power without a value": (lambda x, e: x ** float("nan"), "pow"),
    "knn": (knn, "argsort"),
    "sort": (lambda x, e: x.sort(0).values, "sort"),
    "clamp": (lambda x, e: x.clamp(-1, 1), "clamp"),
    "norm": (lambda x, e: x * x.norm(), "norm"),
    "cumsum": (lambda x, e: (x * x).cumsum(0), 2),
    "cumprod": (lambda x, e: x.cumprod(1), "cumprod"),
    "prod": (lambda x, e: x.scatter_reduce(0, torch.zeros(12, 5).long(), x, "prod"), "scatter_reduce"),
    "masked_fill by value": (lambda x, e: x.masked_fill(COLUMNS, x[0, 0]), "masked_fill"),
    "index_put": (lambda x, e: x.index_put((torch.tensor([0]),), x[1]), "index_put"),
    "sum to whole numbers": (lambda x, e: x + (3 * x).sum(0, dtype=torch.long), "sum"),
    "half": (lambda x, e: x.to(torch.bfloat16).double() * x, "to"),
    "autocast": (lambda x, e: under_autocast(x), "linear"),
    "noise": (lambda x, e: x * torch.rand(WIDTH).double(), "random numbers"),
    "noise on a constant": (lambda x, e: x * F.dropout(torch.ones_like(x), 0.5), "random numbers"),
    "dropped edges": (dropped_edges, "random numbers"),
    "noise of its own seed": (lambda x, e: x * torch.rand(5, generator=torch.Generator().manual_seed(0)), 1),
    "checkpoint": (lambda x, e: checkpoint(lambda y: y * y, x, use_reentrant=False), 2),
    "vmap": (lambda x, e: torch.func.vmap(lambda row: row * row)(x), "aten.mul.Tensor"),
    "inner gradient": (lambda x, e: torch.autograd.grad((x**3).sum(), x)[0], "grad"),
    "sparse values": (lambda x, e: torch.sparse_coo_tensor(e, x[e[0], 0], (12, 12)) @ x, None),
    "fails on polynomials only": (lambda x, e: torch.DoubleTensor(x) * x, "the code"),
}


def under_autocast(x):
    with torch.autocast("cpu", torch.bfloat16):
        return F.linear(x.float(), W.float()).double()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, on what these models do
def test_function(name):
    function, expected = FUNCTIONS[name]
    model, data = Net(lambda x, e: function(x * 1.0, e)), graph()
    if isinstance(expected, int):
        check_exact(model, data, expected)
        return
    with pytest.raises(NotPolynomialError) as caught:
        apexgnn.attribute(model, data)
    assert expected is None or caught.value.operation == expected
    with pytest.raises(NotPolynomialError):
        apexgnn.certify(model, data)


def test_the_very_input_written_into():
    def shifted(x, edges):
        x += 1
        return x * x

    data = graph()
    result = apexgnn.attribute(Net(shifted), data, target=1)
    other = apexgnn.attribute(Net(lambda x, e: (x + 1) * (x + 1)), data, target=1)
    assert torch.equal(data.x, graph().x)
    assert float(result.residual.abs()) <= 1e-13 * float(other.features.abs().sum())


class Counts(nn.Module):
    """Scores that depend on how often it was called."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.ones((), dtype=torch.float64))
        self.number = 0

    def forward(self, x):
        self.calls += 1
        self.number += 1
        return x * self.calls * self.number


class Averages(nn.Module):
    """Takes the mean of the input into its state, and then uses it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(WIDTH, dtype=torch.float64))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return x * self.mean


class Products(MessagePassing):
    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        return x_i * x_j


class Weighs(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GraphConv(WIDTH, WIDTH).double()

    def forward(self, x, edge_index):
        return self.conv(x, edge_index, (x[edge_index[0]] * x[edge_index[1]]).sum(-1))


def hooked(kind, hook):
    module = nn.Linear(WIDTH, WIDTH, dtype=torch.float64)
    getattr(module, kind)(hook)
    return module


MODULES = {  # name: (module, called with the edges too, its degree, or the operation that is refused and where)
    "a state that counts": (Counts(), False, 1),
    "a state that learns": (Averages(), False, 2),
    "a cache of the input": (SGConv(WIDTH, WIDTH, K=2, cached=True).double(), True, 1),
    "messages that multiply": (Products(), True, 2),
    "weights from the input": (Weighs(), True, 3),
    "spectral norm, learning": (nn.utils.spectral_norm(nn.Linear(WIDTH, WIDTH).double()), False, 1),
    "parametrized": (nn.utils.parametrizations.orthogonal(nn.Linear(WIDTH, WIDTH).double()), False, 1),
    "a hook that squares": (hooked("register_forward_hook", lambda m, a, out: out * out), False, 2),
    "a hook before": (hooked("register_forward_pre_hook", lambda m, a: (a[0] ** 3,)), False, 3),
    "a hook with relu": (hooked("register_forward_hook", lambda m, a, out: out.relu()), False, ("relu", "")),
    "scripted": (torch.jit.script(nn.Linear(WIDTH, WIDTH).double()), False, ("forward", "inner")),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_module(name):
    module, edges, expected = MODULES[name]
    model = Around(module, edges)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    if isinstance(expected, int):
        check_exact(model, graph(), expected)
    else:
        with pytest.raises(NotPolynomialError) as caught:
            apexgnn.attribute(model, graph())
        assert (caught.value.operation, caught.value.module) == expected
    assert all(torch.equal(model.state_dict()[key], value) for key, value in before.items())


class Around(Net):
    def __init__(self, inner, edges):
        super().__init__(None)
        self.inner, self.edges = inner, edges

    def forward(self, x, edge_index, batch=None):
        h = self.inner(x, edge_index) if self.edges else self.inner(x)
        return self.lin(h + x).sum(0, keepdim=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, e: x * random.random(),
        lambda x, e: x * np.random.rand(),
        lambda x, e: x * x if type(x) is torch.Tensor else x,
        lambda x, e: x * len(repr(x)),
    ],
    ids=["python's dice", "numpy's dice", "asks for the type", "reads the print"],
)
def test_what_no_rule_can_see_is_seen_by_its_residual(function):
    """The certificate says Σφ = f(X) − f(X′); where that fails by more than rounding, nothing is returned."""
    with pytest.raises(NumericalError, match="completeness fails"):
        apexgnn.attribute(Net(function), graph())


def test_certify_compares_the_pass_with_the_score():
    with pytest.raises(NotPolynomialError, match="something else"):
        apexgnn.certify(Net(lambda x, e: x * x if type(x) is torch.Tensor else x), graph())


def test_other_operations_at_every_call():
    calls = []

    def changing(x, edges):
        calls.append(0)
        return x ** (2 * len(calls))

    with pytest.raises(NotPolynomialError, match="other operations at every call"):
        apexgnn.attribute(Net(changing), graph())


def test_a_model_that_asks_whether_gradients_are_wanted():
    """The score that is explained is computed without them, and so is the path."""
    model = Net(lambda x, e: x**3 if x.requires_grad else x * x)
    result = apexgnn.attribute(model, graph())
    assert result.certificate.degree == 2
    assert float(result.residual.abs()) <= 1e-13 * float(result.features.abs().sum())


def test_float32_inside_is_exact_up_to_float32():
    result = apexgnn.attribute(Net(lambda x, e: (x * x).float().double()), graph())
    assert 0 < float(result.residual.abs()) < 1e-6 * float(result.features.abs().sum())
    assert result.certificate.degree == 2


def test_data_is_given_as_a_copy():
    data = Data(x=graph().x, edge_index=graph().edge_index, edge_weight=torch.ones(30).double())

    def call(model, data):
        data.edge_weight *= 2
        return model(data.x * data.edge_weight[0], data.edge_index)

    result = apexgnn.attribute(Net(lambda x, e: x * x), data, call=call)
    assert float(data.edge_weight[0]) == 1
    assert float(result.residual.abs()) <= 1e-13 * float(result.features.abs().sum())


def test_a_tensor_kept_from_an_earlier_call_is_refused():
    kept = {}

    def remembers(x, edges):
        return kept.setdefault(type(x), x * x) * x

    apexgnn.certify(Net(remembers), graph())
    with pytest.raises(NotPolynomialError, match="kept from an earlier call") as caught:
        apexgnn.certify(Net(remembers), graph())
    assert caught.value.operation == "mul"


def test_graphs_of_a_batch_that_see_each_other_are_refused():
    """The sum of the scores is explained right, but which score a share belongs to is not known."""
    lin = nn.Linear(WIDTH, 2, dtype=torch.float64)

    def centred(x, edge_index, batch):
        return global_mean_pool(lin((x - x.mean(0)) ** 2), batch)

    with pytest.raises(NumericalError, match="one graph of a batch sees another"):
        apexgnn.attribute(centred, make_batch())
