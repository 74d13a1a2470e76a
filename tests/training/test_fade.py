"""The path from zero features: what is asked there, and what training makes of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import log_softmax
from torch_geometric.data import Batch

from apexgnn.nn import PolyGIN
from apexgnn.training import Quotient, Recipe, fit
from apexgnn.training.batch_norm import add_batch_norm
from apexgnn.training.fade import fading_loss
from apexgnn.training.prepare import Coordinates, absorb
from training.toys import graphs, packed, split

PLAIN = Recipe("r", 8, 3e-3, 16, schedule="one-cycle", clip=1.0, prepared=True, theta_init=0.5)


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_the_loss_is_that_of_the_plain_model_at_a_point_of_the_path(tau):
    torch.manual_seed(0)
    quotient, which = Quotient.of(packed()), np.arange(10)
    at = Coordinates.of(quotient.features, each=True)
    model = PolyGIN(4, 2, hidden_channels=8, dropout=0.0)
    found = fading_loss(model, at.apply(quotient).batch(which), at.zero, tau)
    absorb(model, at)
    some = Batch.from_data_list([graphs()[i] for i in which])
    scores = model.eval()(tau * some.x, some.edge_index, some.batch, batch_size=10)
    target = torch.full((10, 2), (1 - tau) / 2)
    target[torch.arange(10), some.y] += tau
    by_hand = -(target * log_softmax(scores, dim=1)).sum(dim=1).mean()
    torch.testing.assert_close(found.expm1(), by_hand, rtol=1e-4, atol=1e-5)


def test_batch_norms_do_not_learn_from_the_path():
    model = PolyGIN(4, 2, hidden_channels=8)
    add_batch_norm(model)
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    assert before
    fading_loss(model, Quotient.of(packed()).batch(np.arange(10)), 0.0, 0.5).backward()
    assert all(torch.equal(buffer, before[name]) for name, buffer in model.named_buffers())
    assert all(part.training for part in model.modules())
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


@pytest.mark.parametrize("options", [{}, {"batch_norm": True}], ids=["prepared", "batch norm"])
def test_zero_features_come_to_mean_that_nothing_is_known(options):
    def certainty(fade):
        """How far apart the two logits of zero features are, against those of the data."""
        chosen = replace(PLAIN, fade=fade, **options)
        model = fit(PolyGIN(4, 2, hidden_channels=8), Quotient.of(packed()), split(), chosen, seed=0).model
        some = Batch.from_data_list(graphs())
        ends = [model(t * some.x, some.edge_index, some.batch) for t in (0.0, 1.0)]
        at_zero, at_data = ((scores[:, 0] - scores[:, 1]).abs().mean().item() for scores in ends)
        return at_zero / at_data

    assert certainty(1.0) < 0.5 * certainty(0.0)
