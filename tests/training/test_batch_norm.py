"""Batch norm folded away: the same function, the plain architecture, the certificate of a PolyGIN."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Batch

import apexgnn
from apexgnn.nn import PolyGIN
from apexgnn.training import Quotient, Recipe, evaluate, fit
from apexgnn.training.batch_norm import add_batch_norm, fold_batch_norm
from apexgnn.training.forward import logits
from training.toys import graphs, packed, split

NORMED = Recipe(
    "r", 6, 3e-3, 16, schedule="one-cycle", clip=1.0, prepared=True, batch_norm=True, average=0.9, settle=0.5
)
SHAPES = {
    "plain": {},
    "residual": {"residual": True},
    "channel": {"theta": "channel"},
    "both": {"residual": True, "theta": "channel"},
}


def trained_a_little(**options):
    """A model whose batch norm has running statistics, gains and biases that are nobody's default."""
    torch.manual_seed(0)
    model = PolyGIN(4, 2, hidden_channels=8, **options)
    add_batch_norm(model)
    batch = Batch.from_data_list(graphs())
    for part in model.modules():
        if isinstance(part, nn.BatchNorm1d):
            nn.init.uniform_(part.weight, -2, 2)
            nn.init.normal_(part.bias)
    for _ in range(5):
        model(batch.x, batch.edge_index, batch.batch)
    return model.double().eval(), batch


@pytest.mark.parametrize("options", SHAPES.values(), ids=SHAPES)
def test_the_folded_model_is_the_batch_norm_model_in_eval_mode(options):
    model, batch = trained_a_little(**options)
    x = batch.x.double()
    before = model(x, batch.edge_index, batch.batch)
    fold_batch_norm(model)
    torch.testing.assert_close(model(x, batch.edge_index, batch.batch), before, rtol=1e-11, atol=1e-11)
    assert not any(isinstance(part, nn.BatchNorm1d) for part in model.modules())
    plain = PolyGIN(**model.config)
    assert {k: v.shape for k, v in model.state_dict().items()} == {
        k: v.shape for k, v in plain.state_dict().items()
    }


def test_the_quotient_gives_batch_norm_in_eval_mode_the_same_logits():
    model, _ = trained_a_little()
    quotient = Quotient.of(packed())
    which = np.arange(10)
    batch = replace(quotient, features=quotient.features.double()).batch(which)
    some = Batch.from_data_list([graphs()[i] for i in which])
    plain = model(some.x.double(), some.edge_index, some.batch, batch_size=10)
    torch.testing.assert_close(logits(model, batch), plain, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("options", SHAPES.values(), ids=SHAPES)
def test_what_training_gives_is_certified_at_degree_sixteen(options):
    quotient = Quotient.of(packed())
    run = fit(PolyGIN(4, 2, hidden_channels=8, **options), quotient, split(), NORMED, seed=0)
    assert type(run.model) is PolyGIN
    certificate = apexgnn.certify(run.model, graphs()[0])
    assert (certificate.degree, certificate.points) == (16, 8)
    accuracy, loss = evaluate(run.model, quotient, split().val.numpy())
    assert accuracy == run.best.validation_accuracy
    assert loss == pytest.approx(run.best.validation_loss, rel=1e-3)


@pytest.mark.parametrize("each", [False, True])
def test_features_enter_as_they_are_whatever_their_units(each):
    """The same data in other units: training in coordinates of its own makes the same model of it, up to rounding."""
    quotient = Quotient.of(packed())
    units = torch.tensor([1.0, 100.0, 0.01, 7.0]) if each else torch.tensor(50.0)
    other = replace(quotient, features=quotient.features * units)
    chosen = replace(NORMED, scale_each=each, epochs=2)
    losses = [
        fit(PolyGIN(4, 2, hidden_channels=8), data, split(), chosen, seed=0).history[-1].validation_loss
        for data in (quotient, other)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
