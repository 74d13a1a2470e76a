"""Batch norm while training, a plain PolyGIN afterwards.

In training every input of a σ is normalised by its batch, so that no channel leaves the range in which z + θz² can
learn, at any step and not the first alone. In eval mode batch norm is affine with fixed numbers m, v, γ, β, and is
folded into the linear map before it:

    γ (W a + b − m)/√(v + ε) + β = (g W) a + (g (b − m) + β),   g = γ/√(v + ε)

What is left has the layers, the parameter count and the degree of a PolyGIN that never knew batch norm.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import nn

from apexgnn.nn import PolyGIN, PolyScaleNorm
from apexgnn.training.forward import poly_layers


def add_batch_norm(model: PolyGIN) -> None:
    """Put batch norm before every σ: in the place of the scale of each layer, and after the head's first map.

    >>> model = PolyGIN(2, 2, hidden_channels=3)
    >>> add_batch_norm(model)
    >>> sum(isinstance(part, nn.BatchNorm1d) for part in model.modules())
    4
    """
    for conv in poly_layers(model):
        conv.norm = cast(PolyScaleNorm, nn.BatchNorm1d(conv.lin1.out_features))
    first = cast(nn.Linear, model.head[0])
    model.head[0] = nn.Sequential(first, nn.BatchNorm1d(first.out_features))


@torch.no_grad()
def fold_batch_norm(model: PolyGIN) -> None:
    """Make it a plain PolyGIN with the same function as in eval mode.

    >>> model, x, edges = PolyGIN(2, 2, hidden_channels=3), torch.rand(4, 2), torch.tensor([[0, 1], [1, 2]])
    >>> add_batch_norm(model)
    >>> _ = model(x, edges, torch.tensor([0, 0, 1, 1]))
    >>> before = model.eval()(x, edges)
    >>> fold_batch_norm(model)
    >>> torch.allclose(model(x, edges), before, atol=1e-6), model.convs[0].norm
    (True, PolyScaleNorm())
    """
    for conv in poly_layers(model):
        _fold(conv.lin1, cast(nn.BatchNorm1d, conv.norm))
        conv.norm = PolyScaleNorm(conv.lin1.out_features).to(conv.lin1.weight)
    first, norm = cast(nn.Sequential, model.head[0])
    _fold(cast(nn.Linear, first), cast(nn.BatchNorm1d, norm))
    model.head[0] = first


def _fold(linear: nn.Linear, norm: nn.BatchNorm1d) -> None:
    mean, variance = cast(torch.Tensor, norm.running_mean), cast(torch.Tensor, norm.running_var)
    gain = norm.weight / (variance + norm.eps).sqrt()
    linear.weight.mul_(gain.unsqueeze(1))
    linear.bias.copy_(gain * (linear.bias - mean) + norm.bias)
