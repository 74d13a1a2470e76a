"""`attribute` against exact rational arithmetic: the only error left is that of floating point.

The error is max|φ − φ*| relative to max|φ*|, where φ* has no rounding at all.
"""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import apexgnn
from apexgnn.nn import PolyGIN
from oracles.plain import plain
from oracles.rational import exact

TOLERANCE = {torch.float64: 1e-13, torch.float32: 2e-6}
EDGES = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (0, 0), (2, 3)]
NODES, FEATURES, CLASSES = 4, 2, 2
BASELINES = {
    "zero": None,
    "constant": 0.375,
    "per-feature": torch.tensor([-0.5, 0.25]),
    "arbitrary": torch.tensor([[0.1, -0.2], [0.0, 0.7], [1.0, 0.3], [-0.4, 0.5]], dtype=torch.float64),
}


def generic(dtype, *, seed, scale=0.7, **options):
    """A model none of whose weights is zero, one or small; θ is of order 1."""
    model = PolyGIN(FEATURES, CLASSES, hidden_channels=3, train_eps=True, **options)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * scale)
    return model.to(dtype).eval()


def graph(dtype, *, seed, weighted=False):
    rng = np.random.default_rng(seed)
    weights = torch.tensor(rng.normal(size=len(EDGES)), dtype=dtype) if weighted else None
    x = torch.tensor(rng.normal(size=(NODES, FEATURES)), dtype=dtype)
    return Data(x=x, edge_index=torch.tensor(EDGES).T, edge_weight=weights)


def truth(model, data, baseline, *, target, index=None):
    """φ* as floats, and the score along the path."""
    if baseline is None:
        baseline = 0.0
    start = torch.as_tensor(baseline, dtype=data.x.dtype).expand_as(data.x)
    readout = None if model.config["task"] == "node" else model.config["readout"]
    weights = None if data.edge_weight is None else data.edge_weight.tolist()
    edges = data.edge_index.T.tolist()
    phi, path = exact(
        plain(model.state_dict(), readout=readout),
        data.x.tolist(),
        edges,
        start.tolist(),
        target=target,
        node=index,
        weights=weights,
    )
    return phi.astype(float), path


def error(result, phi):
    return np.abs(result.features.double().numpy() - phi).max() / np.abs(phi).max()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("kind", BASELINES)
@pytest.mark.parametrize(
    "options",
    [
        {"num_layers": 0},
        {"num_layers": 1, "readout": "sum"},
        {"num_layers": 2, "theta": "channel"},
        {"num_layers": 1, "task": "node"},
        {"num_layers": 2, "task": "node", "theta": "channel"},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_equal_to_rational_arithmetic(options, kind, dtype):
    index = 3 if options.get("task") == "node" else None
    for seed in range(2):
        model, data = generic(dtype, seed=seed, **options), graph(dtype, seed=seed, weighted=seed == 1)
        baseline = BASELINES[kind]
        baseline = baseline.to(dtype) if isinstance(baseline, torch.Tensor) else baseline
        result = apexgnn.attribute(model, data, baseline=baseline, target=1, index=index)
        phi, path = truth(model, data, baseline, target=1, index=index)
        assert error(result, phi) <= TOLERANCE[dtype]
        assert path.degree() <= result.certificate.degree == 2 ** (options["num_layers"] + 1)
        for value, at in [(result.score, 1), (result.baseline_score, 0)]:
            scale = abs(phi).sum() + abs(float(path(0))) + abs(float(path(1)))
            assert abs(value.item() - float(path(at))) <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_the_papers_depth(dtype):
    """Four quadratic blocks: degree 16 is reached, not only bounded."""
    model, data = generic(dtype, seed=3, scale=0.5), graph(dtype, seed=3)
    result = apexgnn.attribute(model, data, target=0)
    phi, path = truth(model, data, None, target=0)
    assert path.degree() == result.certificate.degree == 16
    assert error(result, phi) <= TOLERANCE[dtype]


def test_a_batch_is_equal_to_rational_arithmetic_graph_by_graph():
    model = generic(torch.float64, seed=5, num_layers=1)
    items = [graph(torch.float64, seed=seed) for seed in range(3)]
    batch = Batch.from_data_list(items)
    result = apexgnn.attribute(model, batch, target=torch.tensor([0, 1, 0]))
    for number, item in enumerate(items):
        phi, _ = truth(model, item, None, target=number % 2)
        part = result.features[batch.batch == number].numpy()
        assert np.abs(part - phi).max() / np.abs(phi).max() <= TOLERANCE[torch.float64]


def test_one_point_fewer_is_wrong_on_a_generic_model():
    """With θ of order 1 the certified points are needed: one fewer costs a factor of at least 10³."""
    model, data = generic(torch.float64, seed=7, num_layers=2), graph(torch.float64, seed=7)
    phi, path = truth(model, data, None, target=0)
    assert path.degree() == 8
    errors = [
        error(apexgnn.integrated_gradients(model, data, steps=steps, target=0), phi) for steps in (3, 4, 5)
    ]
    assert errors[0] > 1e3 * max(errors[1:])
    assert max(errors[1:]) <= TOLERANCE[torch.float64]
