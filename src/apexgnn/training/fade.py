"""Teaching a model the path that its attributions run along.

An attribution from the baseline zero integrates the gradient over τX, τ from 0 to 1: features that no data set has.
Nothing in the training data says what the logits f(τX) are there, and a polynomial of degree 16 may be anything, say
10⁷; all the more since prepared starts and batch norm move the middle of the data to where z + θz² is tame, and zero
features far outside. The shares then add up to f(X) − f(0) exactly and tell of that number, not of the prediction. So
training may ask for one thing more: along the path the answer fades. With τ drawn anew at every step,

    loss = CE(f(X), y) + fade · log(1 + CE(f(τX), τ·onehot(y) + (1 − τ)·uniform)),

so zero features mean "nothing is known": f(0) ≈ 0 up to a constant that all classes share. The logarithm keeps a
logit of 10⁷ from drowning, under a bounded gradient, what the data have to say.

It does not suit data in which τX is a graph like any other: in BA-Shapes all features are equal and only sums of them
tell degrees, so half the features look like half the neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from apexgnn.nn import GIN, PolyGIN
from apexgnn.training.forward import logits
from apexgnn.training.quotient import QuotientBatch
from apexgnn.training.recipes import Recipe


def objective(
    model: PolyGIN | GIN, batch: QuotientBatch, recipe: Recipe, *, zero: Tensor | float = 0.0
) -> Tensor:
    """What one step of training lowers: the cross-entropy, and the fading loss where the recipe has one.

    Args:
        model: in training mode.
        batch: features in the coordinates of the training.
        recipe: says the weights of the parts.
        zero: what zero features are in these coordinates.

    >>> from apexgnn.data import load
    >>> from apexgnn.training.quotient import Quotient
    >>> batch = Quotient.of(load("ba-shapes").graphs, task="node").batch(torch.arange(700))
    >>> objective(PolyGIN(10, 4, hidden_channels=6, task="node"), batch, Recipe("mine", 1, 1e-3)).shape
    torch.Size([])
    """
    loss = cross_entropy(logits(model, batch), batch.labels, label_smoothing=recipe.label_smoothing)
    if not recipe.fade:
        return loss
    return loss + recipe.fade * fading_loss(model, batch, zero, float(torch.rand(())))


def fading_loss(model: PolyGIN | GIN, batch: QuotientBatch, zero: Tensor | float, tau: float) -> Tensor:
    """log(1 + CE(f(τX), τ·onehot(y) + (1 − τ)·uniform)).

    Args:
        model: in training mode.
        batch: features in the coordinates of the training.
        zero: what zero features are in these coordinates, [F] or a number.
        tau: where on the path.

    >>> from apexgnn.data import load
    >>> from apexgnn.training.quotient import Quotient
    >>> model, nodes = PolyGIN(10, 4, hidden_channels=6, task="node"), torch.arange(700)
    >>> _ = nn.init.zeros_(model.head[3].weight), nn.init.zeros_(model.head[3].bias)
    >>> batch = Quotient.of(load("ba-shapes").graphs, task="node").batch(nodes)
    >>> round(fading_loss(model, batch, 0.0, 0.0).expm1().item(), 4)  # log 4, of a model that knows nothing
    1.3863
    """
    with _norms_at_rest(model):
        scores = logits(model, replace(batch, features=zero + tau * (batch.features - zero)))
    classes = scores.size(1)
    target = tau * one_hot(batch.labels, classes).to(scores.dtype) + (1 - tau) / classes
    return cross_entropy(scores, target).log1p()


@contextmanager
def _norms_at_rest(model: nn.Module) -> Iterator[None]:
    """Batch norms use the statistics of the data, and do not learn those of the path."""
    norms = [part for part in model.modules() if isinstance(part, nn.BatchNorm1d)]
    modes = [norm.training for norm in norms]
    try:
        for norm in norms:
            norm.eval()
        yield
    finally:
        for norm, mode in zip(norms, modes, strict=True):
            norm.train(mode)
