"""Random compositions of allowed operations: the certified degree is never too low, and the integral is right.

A program is a list of steps; each takes one or two earlier results and makes a new one of the same shape [n, 4].
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric.nn import GCNConv, GINConv, SAGEConv

import apexgnn
from explain.nets import graph

WIDTH = 4


def matrix(seed):
    return torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) / 2


def scattered(x, edges):
    return x.new_zeros(x.shape).index_add(0, edges[1], x.index_select(0, edges[0]))


UNARY = {
    "linear": lambda x, e, k: F.linear(x, matrix(k), matrix(k)[0]),
    "matmul": lambda x, e, k: x @ matrix(k),
    "scatter": lambda x, e, k: scattered(x, e) / 3,
    "square": lambda x, e, k: x.square() / 2,
    "power": lambda x, e, k: x ** (k % 3) / 2,
    "scale": lambda x, e, k: x * matrix(k)[0],
    "shift": lambda x, e, k: 1 - x,
    "roll": lambda x, e, k: x.roll(1, dims=0),
    "gather": lambda x, e, k: x[torch.arange(len(x)).flip(0)],
    "mean": lambda x, e, k: x.mean(0, keepdim=True).expand_as(x),
    "transpose": lambda x, e, k: (x.T @ x)[:1].expand(len(x), WIDTH) / 9,
    "cat": lambda x, e, k: torch.cat([x[:, :2], x[:, 2:] * x[:, :2]], dim=1),
    "split": lambda x, e, k: torch.stack(x.unbind(1)[::-1], dim=1),
    "einsum": lambda x, e, k: torch.einsum("nf,fg,ng->nf", x, matrix(k), x) / 3,
    "norm": lambda x, e, k: F.batch_norm(x, matrix(k)[0], matrix(k)[1] ** 2 + 1, training=False),
    "divide": lambda x, e, k: x / (matrix(k)[0].abs() + 1),
    "constant": lambda x, e, k: x + torch.ones_like(x).cumsum(0) / 5,
}
BINARY = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y / 2,
    "where": lambda x, y: torch.where(torch.arange(WIDTH) % 2 == 0, x, y),
}
STEP = st.one_of(
    st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 5), st.integers(0, 99)),
    st.tuples(st.sampled_from(sorted(BINARY)), st.integers(0, 5), st.integers(0, 5)),
)


class Program(nn.Module):
    def __init__(self, steps, conv):
        super().__init__()
        self.steps = steps
        torch.manual_seed(0)
        kinds = {
            "gcn": lambda: GCNConv(WIDTH, WIDTH),
            "sage": lambda: SAGEConv(WIDTH, WIDTH),
            "gin": lambda: GINConv(nn.Linear(WIDTH, WIDTH), train_eps=True),
        }
        self.conv = kinds[conv]().double()

    def forward(self, x, edge_index, batch=None):
        made = [self.conv(x, edge_index)]
        for name, first, second in self.steps:
            a = made[-1 - first % len(made)]
            made.append(
                UNARY[name](a, edge_index, second)
                if name in UNARY
                else BINARY[name](a, made[-1 - second % len(made)])
            )
        return (made[-1] + x).sum(0, keepdim=True)


def degree_of(model, data):
    try:
        return apexgnn.certify(model, data).degree
    except (
        apexgnn.NotPolynomialError
    ) as refusal:  # a power of 0 can make the output constant in places, never unknown
        raise AssertionError(f"refused an allowed operation: {refusal}") from refusal


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(STEP, min_size=1, max_size=6), st.sampled_from(["gcn", "sage", "gin"]))
def test_degree_is_sound_and_the_integral_right(steps, conv):
    model, data = Program(steps, conv).eval(), graph(6, WIDTH, 12)
    degree = degree_of(model, data)
    if degree > 24:
        return
    tau = (1 + np.cos(np.pi * np.arange(degree + 2) / (degree + 1))) / 2
    start = torch.randn(6, WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.no_grad():
        values = np.stack([model(start + t * (data.x - start), data.edge_index).numpy().ravel() for t in tau])
    # the (D + 1)-th divided difference, scaled by its own weights, is rounding
    weights = (-1.0) ** np.arange(degree + 2)
    weights[[0, -1]] /= 2
    assert np.abs(weights @ values).max() <= 1e-11 * (degree + 2) * (1 + np.abs(values).max())

    result = apexgnn.attribute(model, data, baseline=start, target=1)
    high = apexgnn.integrated_gradients(model, data, baseline=start, target=1, steps=degree // 2 + 8)
    size = float(high.features.abs().max()) + float(np.abs(values).max())
    assert float((result.features - high.features).abs().max()) <= 1e-11 * size
    assert result.certificate.degree == degree


REFUSED = {
    "relu": F.relu,
    "item": lambda x: x * x.sum().item(),
    "branch": lambda x: x if bool((x > 0).all()) else 2 * x,
    "softmax": lambda x: torch.softmax(x, 1),
    "norm": lambda x: x / x.norm(),
    "max": lambda x: x.amax(0, keepdim=True).expand_as(x),
    "round": lambda x: x.round(),
}


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(STEP, max_size=3), st.sampled_from(sorted(REFUSED)), st.lists(STEP, max_size=3))
def test_one_bad_step_anywhere_is_refused(before, bad, after):
    first, last = Program(before, "gcn"), Program(after, "gcn")

    class Both(nn.Module):
        def forward(self, x, edge_index, batch=None):
            h = REFUSED[bad](x + first(x, edge_index))
            return last(h, edge_index)

    with pytest.raises(apexgnn.NotPolynomialError):
        apexgnn.attribute(Both(), graph(6, WIDTH, 12))
