"""What is not polynomial is refused, with the operation and the place; and the model is left as it was."""

import copy
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as gnn
from torch import nn

import apexgnn
from apexgnn import NotPolynomialError
from apexgnn.nn import GIN
from explain.nets import Reads, Stack, graph, poly_gin


class Reverses(torch.autograd.Function):
    """The identity with a backward of its own: what gradients say is not what the function does."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


@torch.no_grad()
def hidden(x):
    return x * x


def swallowed(x):
    try:
        return torch.relu(x)
    except NotPolynomialError:
        return x


def written_through_a_view(x):
    y = x * 1
    z = y.view(-1)
    z += 1
    return y


def written_into_a_plain_tensor(x):
    buffer = torch.zeros(x.shape, dtype=x.dtype)
    buffer[0] = x[0]
    return buffer + x


def added_to_a_plain_tensor(x):
    buffer = torch.zeros(x.shape, dtype=x.dtype)
    buffer += x
    return buffer


def branched(x):
    return x if x.sum() > 0 else -x


def untracked(x):
    with torch._C.DisableTorchFunctionSubclass():
        return torch.mul(x, 2)


OPERATIONS = {
    "relu": F.relu,
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "sigmoid": torch.sigmoid,
    "layer_norm": lambda x: F.layer_norm(x, (5,)),
    "max": lambda x: x.max(0, keepdim=True).values + x,
    "abs": torch.abs,
    "div": lambda x: x / (x + 9),
    "__rdiv__": lambda x: 1 / x,
    "pow": lambda x: x**1.5,
    "gt": branched,
    "item": lambda x: x * x.sum().item(),
    "__float__": lambda x: x * float(x.sum()),
    "tolist": lambda x: torch.tensor(x.tolist()),
    "numpy": lambda x: x * torch.from_numpy(x.numpy()),
    "__array__": lambda x: torch.from_numpy(np.asarray(x)),
    "detach": lambda x: x * x.detach(),
    "Tensor.data": lambda x: x * x.data,
    "mul": hidden,
    "view": Reverses.apply,
    "add_": written_through_a_view,
    "__setitem__": written_into_a_plain_tensor,
    "add": lambda x: torch.add(x, x, out=torch.empty(x.shape, dtype=x.dtype)),
    "__deepcopy__": lambda x: copy.deepcopy(x) * 2,
    "__reduce_ex__": lambda x: pickle.loads(pickle.dumps(x)),
    "untyped_storage": lambda x: torch.tensor(x.untyped_storage()),
    "aten.mul.Tensor": untracked,
    "fft_fft": lambda x: torch.fft.fft(x).real,
    "scatter_reduce": lambda x: x.scatter_reduce(0, torch.zeros(12, 5, dtype=torch.long), x, "amax"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_is_refused_by_name(operation):
    with pytest.raises(NotPolynomialError, match="integrated_gradients") as caught:
        apexgnn.attribute(Reads(OPERATIONS[operation]), graph(), index=0)
    assert caught.value.operation == operation
    assert caught.value.module == ""


def test_writing_into_a_plain_tensor_is_refused():
    with pytest.raises(NotPolynomialError, match="new_zeros"):
        apexgnn.attribute(Reads(added_to_a_plain_tensor), graph(), index=0)


def test_a_swallowed_refusal_still_counts():
    with pytest.raises(NotPolynomialError) as caught:
        apexgnn.certify(Reads(swallowed), graph(), index=0)
    assert caught.value.operation == "relu"


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_compiled_code_is_refused():
    doubled = torch.jit.trace(lambda x: 2 * x, torch.ones(2, 2, dtype=torch.float64))
    with pytest.raises(NotPolynomialError, match="compiled"):
        apexgnn.attribute(Reads(doubled), graph(), index=0)


MODULES = {
    "relu": (GIN(5, 2, hidden_channels=4).double(), "convs.0.1"),
    "leaky_relu": (Stack("GATConv").double(), "first"),
    "layer_norm": (Stack("GCNConv", between=nn.LayerNorm(8)).double(), "between"),
    "batch_norm": (Stack("GCNConv", between=nn.BatchNorm1d(8)).double().train(), "between"),
    "dropout": (Stack("GCNConv", between=nn.Dropout(0.5)).double().train(), "between"),
    "scatter_reduce": (Stack("GCNConv", pool=gnn.global_max_pool).double(), ""),
    "softmax": (Stack("GCNConv", between=nn.Sequential(nn.Identity(), nn.Softmax(-1))).double(), "between.1"),
}


@pytest.mark.parametrize("operation", MODULES)
def test_submodule_is_named(operation):
    model, place = MODULES[operation]
    with pytest.raises(NotPolynomialError) as caught:
        apexgnn.attribute(model, graph())
    assert (caught.value.operation, caught.value.module) == (operation, place)
    if place:
        assert f"in '{place}'" in str(caught.value)


def test_probabilities_are_refused():
    model = nn.Sequential()
    model.add_module("logits", poly_gin())

    def call(m, d):
        return m.logits(d.x, d.edge_index).softmax(-1)

    with pytest.raises(NotPolynomialError, match="before any probability"):
        apexgnn.attribute(model, graph(), call=call)


def test_an_output_that_ignores_x_is_refused():
    with pytest.raises(NotPolynomialError, match="the output"):
        apexgnn.attribute(lambda x, edge_index, batch: torch.ones(1, 2), graph())


def state_of(model):
    return (
        [m.training for m in model.modules()],
        [
            (n, p.requires_grad, p.clone(), None if p.grad is None else p.grad.clone())
            for n, p in model.named_parameters()
        ],
        [(n, b.clone()) for n, b in model.named_buffers()],
        [(len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in model.modules()],
        [sorted(vars(m)) for m in model.modules()],
        torch.get_rng_state(),
    )


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


class Careless(nn.Module):
    """Does to itself what models should not do in a forward pass."""

    def __init__(self, fail):
        super().__init__()
        self.fail = fail
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(5).double()
        self.lin = nn.Linear(5, 2).double()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, edge_index, batch=None):
        self.last = x
        self.calls += 1
        if self.fail == "random":
            torch.rand(3)
        if self.fail == "exception":
            raise KeyError("inside the model")
        if self.fail == "refusal":
            x = x.relu()
        if self.fail == "mode":
            self.train()
        return self.lin(x * x).sum(0, keepdim=True)


@pytest.mark.parametrize(
    "fail, error",
    [
        (None, None),
        ("mode", None),
        ("refusal", NotPolynomialError),
        ("random", NotPolynomialError),
        ("exception", KeyError),
    ],
)
@pytest.mark.parametrize("explain", [apexgnn.attribute, apexgnn.certify, apexgnn.integrated_gradients])
def test_model_is_left_as_found(explain, fail, error):
    if explain is apexgnn.integrated_gradients:
        error = {"refusal": None, "random": apexgnn.InputError}.get(fail, error)
    model = Careless(fail).eval()
    model.lin.weight.grad = torch.ones_like(model.lin.weight)
    model.lin.bias.requires_grad_(False)
    model.norm.train()
    before = state_of(model)
    if error is None:
        explain(model, graph())
    else:
        with pytest.raises(error):
            explain(model, graph())
    assert same(state_of(model), before)
    assert not nn.modules.module._global_forward_hooks
    assert not nn.modules.module._global_forward_pre_hooks


def test_batch_norm_in_training_keeps_its_statistics():
    model = Stack("GCNConv", between=nn.BatchNorm1d(8)).double().train()
    before = state_of(model)
    with pytest.raises(NotPolynomialError, match="statistics of the batch"):
        apexgnn.attribute(model, graph())
    assert same(state_of(model), before)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_works_in_any_grad_mode(mode):
    model, data = poly_gin(), graph()
    with mode():
        result = apexgnn.attribute(model, data)
        approximate = apexgnn.integrated_gradients(model, data, steps=4)
    torch.testing.assert_close(result.features, apexgnn.attribute(model, data).features)
    assert not approximate.exact
