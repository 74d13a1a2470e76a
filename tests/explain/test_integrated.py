"""Integrated Gradients: every rule, counted; the theorem on its residual; memory; and Captum's own figures."""

import numpy as np
import pytest
import torch
import torch_geometric.nn as gnn
from torch import nn

import apexgnn
from apexgnn import InputError
from apexgnn.nn import GIN
from apexgnn.path import Quadrature, quadrature
from explain.nets import Stack, batch, graph, poly_gin, reference, score


@pytest.mark.parametrize("rule", list(Quadrature))
@pytest.mark.parametrize("steps", [2, 6])
def test_residual_is_the_quadrature_error_of_the_derivative(rule, steps):
    """The theorem of the paper's appendix, for every rule: Σφ − Δf = Σ w f′(τ) − ∫ f′ dτ."""
    model, data = poly_gin(theta=0.8), graph()
    result = apexgnn.integrated_gradients(model, data, rule=rule, steps=steps, target=1)
    f = score(model, data, 1)

    def derivative(tau):
        return float(torch.autograd.functional.jvp(f, tau * data.x, data.x)[1])

    built, high = quadrature(rule, steps), quadrature("gauss-legendre", 32)
    error = sum(w * derivative(t) for t, w in zip(built.nodes, built.weights, strict=True))
    error -= sum(w * derivative(t) for t, w in zip(high.nodes, high.weights, strict=True))
    size = float(result.score.abs() + result.baseline_score.abs() + result.features.abs().sum())
    assert float(result.residual) == pytest.approx(error, abs=1e-12 * size)
    assert not result.exact
    assert result.certificate is None
    assert result.evaluations == len(built)


@pytest.mark.parametrize(
    "rule, order", [("left", 1), ("right", 1), ("midpoint", 2), ("trapezoid", 2), ("simpson", 4)]
)
def test_residuals_shrink_at_the_order_of_the_rule(rule, order):
    model, data = poly_gin(theta=0.3), graph()
    steps = [16, 32, 64]
    found = [
        float(apexgnn.integrated_gradients(model, data, rule=rule, steps=n).residual.abs()) for n in steps
    ]
    assert np.polyfit(np.log(steps), np.log(found), 1)[0] == pytest.approx(-order, abs=0.25)


def test_any_differentiable_model():
    for model in (GIN(5, 3, hidden_channels=8).double().eval(), Stack("GATConv").double().eval()):
        data = graph()
        result = apexgnn.integrated_gradients(model, data, steps=24)
        truth = reference(model, data, int(result.target), points=24)
        torch.testing.assert_close(result.features, truth, rtol=1e-9, atol=1e-12)
    with pytest.raises(apexgnn.NotPolynomialError):
        apexgnn.attribute(model, data)


def test_node_task_and_batch_and_models_that_mix_rows():
    node = poly_gin(task="node")
    exact, numeric = (f(node, graph(), index=7) for f in (apexgnn.attribute, apexgnn.integrated_gradients))
    torch.testing.assert_close(numeric.features, exact.features, rtol=1e-9, atol=1e-12)
    exact, numeric = (f(poly_gin(), batch()) for f in (apexgnn.attribute, apexgnn.integrated_gradients))
    torch.testing.assert_close(numeric.features, exact.features, rtol=1e-9, atol=1e-12)

    class Pools(nn.Module):
        """Knows nothing of batches: copies of the graph side by side would be one graph to it."""

        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(5, 2).double()

        def forward(self, x, edge_index, batch=None):
            return self.lin(x * x).sum(0, keepdim=True)

    pools = Pools()
    exact, numeric = (f(pools, graph()) for f in (apexgnn.attribute, apexgnn.integrated_gradients))
    torch.testing.assert_close(numeric.features, exact.features, rtol=1e-9, atol=1e-12)


def test_memory_bound_splits_the_points_and_changes_nothing():
    model, data = poly_gin(hidden_channels=64), graph(200, 5, 800)
    calls = []
    handle = model.register_forward_pre_hook(lambda m, args: calls.append(len(args[0])))
    whole = apexgnn.integrated_gradients(model, data, steps=12)
    unsplit = max(calls)
    calls.clear()
    parts = apexgnn.integrated_gradients(model, data, steps=12, memory=4 * 2**20)
    handle.remove()
    assert unsplit == 11 * 200  # the first point is taken alone, and measured
    assert max(calls) < unsplit
    torch.testing.assert_close(parts.features, whole.features, rtol=1e-10, atol=1e-14)
    with pytest.raises(InputError, match="memory"):
        apexgnn.integrated_gradients(model, data, memory=0)


def test_captum_gauss_legendre_agrees():
    """Captum's weights pass through float32, so it stops near 1e-8; ours goes on."""
    captum = pytest.importorskip("captum.attr")
    model, data = poly_gin(), graph()
    ours = apexgnn.integrated_gradients(model, data, steps=8, target=1)
    f = score(model, data, 1)
    theirs = captum.IntegratedGradients(lambda x: f(x[0]).reshape(1)).attribute(
        data.x.unsqueeze(0), n_steps=8, method="gausslegendre", internal_batch_size=1
    )
    assert float((theirs[0] - ours.features).abs().max() / ours.features.abs().max()) < 1e-6


def test_what_is_random_is_refused():
    dropped = nn.Linear(5, 2).double()
    with pytest.raises(InputError, match="eval"):
        apexgnn.integrated_gradients(poly_gin().train(), graph())
    with pytest.raises(InputError, match="random numbers"):  # of which no module tells
        apexgnn.integrated_gradients(
            lambda x, e, batch: dropped(nn.functional.dropout(x, 0.5)).sum(0, keepdim=True), graph()
        )


class Mixes(nn.Module):
    """A node model in which every row sees all the others."""

    def __init__(self, norm):
        super().__init__()
        self.norm, self.lin = norm.double(), nn.Linear(5, 3).double()

    def forward(self, x, edge_index):
        return self.lin(self.norm(x).tanh())


class Centred(nn.Module):
    def forward(self, x):
        return x - x.mean(0)


@pytest.mark.parametrize(
    "norm", [Centred(), nn.BatchNorm1d(5), gnn.GraphNorm(5)], ids=lambda n: type(n).__name__
)
def test_copies_that_would_see_each_other_are_taken_one_by_one(norm):
    model, data = Mixes(norm), graph()
    for _ in range(2):  # the second time the model is known, and all points are tried together
        result = apexgnn.integrated_gradients(model, data, index=3, steps=7)
        truth = reference(model, data, int(result.target), points=7, index=3)
        torch.testing.assert_close(result.features, truth, rtol=1e-9, atol=1e-12)


def test_as_many_scores_as_copies():
    """A model without batches that returns [C]: with C copies its output only looks like one row for each."""
    lin = nn.Linear(5, 2).double()

    class Flat(nn.Module):
        def forward(self, x, edge_index, batch=None):
            return lin(x).tanh().sum(0)

    model, data = Flat(), graph()
    first, second = (apexgnn.integrated_gradients(model, data, steps=2, target=0) for _ in range(2))
    torch.testing.assert_close(first.features, second.features, rtol=1e-12, atol=1e-14)


def test_a_score_without_gradient():
    with pytest.raises(InputError, match="without gradient"):
        apexgnn.integrated_gradients(lambda x, e, batch: x.detach().sum(0, keepdim=True), graph())


@pytest.mark.parametrize("steps", [1, 5])
def test_data_is_given_as_a_copy(steps):
    model, data = poly_gin(), graph()
    data.edge_weight = torch.ones(30, dtype=torch.float64)

    def call(model, data):
        data.edge_weight *= 2
        data.x *= 2
        return model(data.x, data.edge_index, data.batch, data.edge_weight)

    x = data.x.clone()
    apexgnn.integrated_gradients(model, data, steps=steps, call=call)
    assert torch.equal(data.x, x)
    assert torch.equal(data.edge_weight, torch.ones(30, dtype=torch.float64))
