"""Neighbourhood sums against a loop over the edges, and their derivatives of first and second order."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from apexgnn.aggregation import Adjacency, aggregate
from apexgnn.errors import GraphError


def edge_by_edge(h: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
    out = [[0.0] * h.size(1) for _ in range(h.size(0))]
    for e, (u, v) in enumerate(edge_index.t().tolist()):
        w = 1.0 if edge_weight is None else edge_weight[e].item()
        for c in range(h.size(1)):
            out[v][c] += w * h[u, c].item()
    return torch.tensor(out, dtype=h.dtype).reshape(h.shape)


@st.composite
def graphs(draw):
    nodes = draw(st.integers(1, 7))
    end = st.integers(0, nodes - 1)
    pairs = draw(
        st.lists(st.tuples(end, end), max_size=20)
    )  # duplicates, self-loops, one-way edges, none at all
    edge_index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    h = torch.randn(nodes, draw(st.integers(1, 4)), dtype=torch.float64, generator=generator)
    weight = (
        torch.randn(len(pairs), dtype=torch.float64, generator=generator) if draw(st.booleans()) else None
    )
    return h, edge_index, weight


@given(graphs())
def test_sums_every_edge(graph):
    assert torch.allclose(aggregate(*graph), edge_by_edge(*graph), rtol=1e-13, atol=1e-13)


@settings(max_examples=25, deadline=None)
@given(graphs())
def test_derivatives_of_both_orders(graph):
    h, edge_index, weight = graph
    h.requires_grad_()
    inputs = (h,) if weight is None else (h, weight.requires_grad_())

    def sums(h: Tensor, weight: Tensor | None = None) -> Tensor:
        return aggregate(h, edge_index, weight)

    assert torch.autograd.gradcheck(sums, inputs)
    assert torch.autograd.gradgradcheck(sums, inputs)


def test_adjacency_gives_the_same_and_sorts_once():
    torch.manual_seed(0)
    h, edge_index = torch.randn(50, 3, dtype=torch.float64), torch.randint(50, (2, 200))
    edges = Adjacency(edge_index, 50)
    assert torch.equal(aggregate(h, edges), aggregate(h, edge_index))
    assert edges.bags().index is edges.bags().index


def test_weights_get_gradients_when_rows_do_not():
    h, edge_index = torch.tensor([[2.0], [3.0]]), torch.tensor([[0, 1], [1, 1]])
    weight = torch.ones(2, requires_grad=True)
    aggregate(h, edge_index, weight).sum().backward()
    assert weight.grad.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.float16])
def test_dtypes(dtype):
    h = torch.tensor([[1, 2], [3, 4]], dtype=dtype)
    assert aggregate(h, torch.tensor([[0, 0], [1, 1]])).tolist() == [[0, 0], [2, 4]]


def test_int32_edges_and_strided_rows():
    h = torch.randn(4, 6)
    edge_index = torch.tensor([[0, 1, 3], [1, 2, 2]])
    expected = aggregate(h[:, ::2].contiguous(), edge_index)
    assert torch.equal(aggregate(h[:, ::2], edge_index), expected)
    assert torch.equal(aggregate(h[:, ::2], edge_index.int()), expected)


def test_higher_dimensions_use_the_plain_sum():
    h, edge_index = torch.randn(3, 2, 2), torch.tensor([[0, 2], [1, 1]])
    assert torch.allclose(aggregate(h, edge_index)[1], h[0] + h[2])


@pytest.mark.parametrize("bad", [5, -1])
def test_refuses_edges_out_of_range(bad):
    with pytest.raises((GraphError, RuntimeError)):
        aggregate(torch.ones(3, 2), torch.tensor([[0], [bad]]))
    with pytest.raises((GraphError, RuntimeError)):
        aggregate(torch.ones(3, 2), torch.tensor([[bad], [0]]))


def test_a_tracer_sees_ordinary_operations():
    seen = []

    class Traced(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    h = torch.ones(3, 2).as_subclass(Traced)
    out = aggregate(h, torch.tensor([[0, 1], [1, 2]]), torch.tensor([2.0, 3.0]))
    assert {"index_select", "mul", "index_add"} <= set(seen)
    assert "embedding_bag" not in seen
    assert out.tolist() == [[0, 0], [2, 2], [3, 3]]
