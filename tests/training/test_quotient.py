"""Colour classes against the plain models in double precision, and against refinement written as dictionaries."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from apexgnn.data import PackedGraphs
from apexgnn.errors import InputError
from apexgnn.nn import GIN, PolyGIN
from apexgnn.training import Quotient
from apexgnn.training.forward import logits
from training.toys import graphs, packed

MODELS = {
    "polygin": lambda **k: PolyGIN(4, 3, hidden_channels=6, **k),
    "polygin-channel": lambda **k: PolyGIN(4, 3, hidden_channels=6, theta="channel", **k),
    "polygin-residual": lambda **k: PolyGIN(4, 3, hidden_channels=6, residual=True, **k),
    "polygin-narrow": lambda **k: PolyGIN(
        4, 3, hidden_channels=2, **k
    ),  # more rows than width: maps multiplied
    "gin": lambda **k: GIN(4, 3, hidden_channels=6, **k),
}


def doubled(quotient):
    return dataclasses.replace(quotient, features=quotient.features.double())


@pytest.mark.parametrize("readout", ["mean", "sum"])
@pytest.mark.parametrize("name", MODELS)
def test_graph_logits_and_gradients_are_the_models_own(name, readout):
    data = graphs()
    torch.manual_seed(0)
    model = MODELS[name](readout=readout).double().eval()
    which = np.array([5, 3, 41, 3, 17, 59])
    batch = Batch.from_data_list([data[i] for i in which])
    fast = logits(model, doubled(Quotient.of(PackedGraphs.pack(data))).batch(which))
    plain = model(batch.x.double(), batch.edge_index, batch.batch, batch_size=len(which))
    torch.testing.assert_close(fast, plain, rtol=1e-10, atol=1e-10)
    weights = torch.randn_like(plain)
    for ours, theirs in zip(
        torch.autograd.grad((fast * weights).sum(), list(model.parameters())),
        torch.autograd.grad((plain * weights).sum(), list(model.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", MODELS)
def test_node_logits_are_the_models_own(name):
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(30, (2, 80), generator=generator)
    data = Data(x=torch.ones(30, 4), edge_index=edges, y=torch.randint(3, (30,), generator=generator))
    model = MODELS[name](task="node").double().eval()
    which = torch.tensor([3, 29, 0])
    batch = doubled(Quotient.of(PackedGraphs.pack([data]), task="node")).batch(which)
    torch.testing.assert_close(
        logits(model, batch), model(data.x.double(), edges)[which], rtol=1e-10, atol=1e-10
    )
    assert torch.equal(batch.labels, data.y[which])


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(0, 30), st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_classes_are_those_of_colour_refinement(seed, nodes, edge_count, kinds):
    rng = np.random.default_rng(seed)
    edges, kind = rng.integers(nodes, size=(2, edge_count)), rng.integers(kinds, size=nodes)
    data = Data(
        x=torch.eye(kinds)[kind], edge_index=torch.from_numpy(edges), y=torch.zeros(nodes, dtype=torch.long)
    )
    colours = [(int(k),) for k in kind]
    sizes = []
    for _ in range(3):
        heard = [sorted(colours[u] for u, v in edges.T if v == node) for node in range(nodes)]
        colours = [(colours[node], tuple(heard[node])) for node in range(nodes)]
        sizes.append(len(set(colours)))
    quotient = Quotient.of(PackedGraphs.pack([data]), task="node")
    assert [len(quotient.features), *(rows.start.size - 1 for rows in quotient.levels)] == sizes


def test_a_batch_holds_no_more_rows_than_it_needs():
    batch = Quotient.of(packed()).batch(np.array([0]))
    nodes = graphs()[0].num_nodes
    assert len(batch.features) <= nodes
    assert all(level.start.numel() <= nodes for level in batch.levels)


def test_an_eps_is_refused():
    model = PolyGIN(4, 3, hidden_channels=2, eps=0.5)
    with pytest.raises(InputError, match="ε"):
        logits(model, Quotient.of(packed()).batch(np.array([0])))
