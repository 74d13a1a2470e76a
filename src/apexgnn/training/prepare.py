"""A start from which a polynomial network can learn.

σ(z) = z + θz² squares what it gets, four times over: a channel of size 3 has size 81 after two blocks and is lost,
one of size 0.1 is linear for ever. So before the first step every input of a σ is given mean 0 and variance 1 on
one batch, layer by layer. That is done by the parameters that are there anyway,

    z = s ⊙ (W₁a + b₁),   b₁ ← b₁ − mean(W₁a + b₁),   s ← 1 / std(W₁a + b₁)

(in the head, which has no s, by the rows of W and b), so the architecture and its parameter count stay as they are.

The features come first: the aggregated features of layer 1 are shifted to mean 0 and divided by their deviation ρ,
*one* for all where they are indicators (one for each would blow up rare atom types by ten or more), one for each
where they are quantities (else the atomic number drowns the rest). Training runs in these coordinates, and
`absorb` folds them into W₁ and b₁ of the first layer, exactly:

    W₁ (a − μ)/ρ + b₁ = (W₁/ρ) a + (b₁ − (W₁/ρ) μ)
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from apexgnn.nn import GIN, PolyGIN
from apexgnn.training.forward import Hidden, onward, poly_layers, read_out, relu_layers
from apexgnn.training.quotient import Quotient, QuotientBatch

SMALLEST = 1e-3  # a channel that hardly varies on the batch is not blown up beyond this


@dataclass(frozen=True, slots=True)
class Coordinates:
    """a ↦ (a − mean) / scale for the aggregated features of the first layer.

    Attributes:
        mean: [F].
        scale: one number for all features, or [F].
    """

    mean: Tensor
    scale: Tensor

    @classmethod
    def of(cls, features: Tensor, *, each: bool = False) -> Coordinates:
        """Those in which these rows have mean 0 and variance 1, over all features together or each by itself.

        >>> Coordinates.of(torch.tensor([[0.0, 4.0], [2.0, 4.0]])).mean.tolist()
        [1.0, 4.0]
        >>> Coordinates.of(torch.tensor([[0.0, 4.0], [2.0, 8.0]]), each=True).scale.tolist()
        [1.0, 2.0]
        """
        mean = features.mean(dim=0)
        square = (features - mean).square()
        scale = square.mean(dim=0).sqrt() if each else square.mean().sqrt()
        return cls(mean, torch.where(scale > SMALLEST, scale, 1.0))

    @property
    def zero(self) -> Tensor:
        """[F], where zero features lie.

        >>> Coordinates(torch.tensor([1.0, 4.0]), torch.tensor(2.0)).zero.tolist()
        [-0.5, -2.0]
        """
        return -self.mean / self.scale

    def apply(self, quotient: Quotient) -> Quotient:
        """The same data in these coordinates."""
        return dataclasses.replace(quotient, features=(quotient.features - self.mean) / self.scale)


@torch.no_grad()
def absorb(model: PolyGIN | GIN, coordinates: Coordinates) -> None:
    """Fold the coordinates into the first layer: the model then takes features as they are.

    >>> model = PolyGIN(2, 2, hidden_channels=3)
    >>> a, at = torch.rand(5, 2), Coordinates(torch.tensor([1.0, 2.0]), torch.tensor(3.0))
    >>> before = model.convs[0].lin1((a - at.mean) / at.scale)
    >>> absorb(model, at)
    >>> torch.allclose(model.convs[0].lin1(a), before, atol=1e-6)
    True
    """
    linear = poly_layers(model)[0].lin1 if isinstance(model, PolyGIN) else relu_layers(model)[0][0]
    linear.weight.div_(coordinates.scale)
    linear.bias.sub_(linear.weight @ coordinates.mean)


@torch.no_grad()
def calibrate(model: PolyGIN, batch: QuotientBatch) -> None:
    """Give the input of every σ mean 0 and variance 1 on this batch, first layer first.

    >>> from apexgnn.data import load
    >>> model, nodes = PolyGIN(10, 4, hidden_channels=6, task="node"), torch.arange(700)
    >>> batch = Quotient.of(load("ba-shapes").graphs, task="node").batch(nodes)
    >>> calibrate(model, batch)
    >>> z = model.convs[0].norm(model.convs[0].lin1(batch.features))
    >>> torch.allclose(z.var(dim=0, correction=0), torch.ones(6), atol=1e-3)
    True
    """
    rows: Hidden | None = None
    for level, conv in enumerate(poly_layers(model)):
        z, carried = (
            (conv.lin1(batch.features), None) if rows is None else onward(rows, conv, batch, level - 1)
        )
        z = _centred(conv.lin1, z)
        conv.norm.scale.copy_(1 / z.std(dim=0, correction=0).clamp(min=SMALLEST))
        rows = Hidden(conv.act(conv.norm(z)), conv.lin2, carried)
    assert rows is not None
    head = cast(nn.Linear, model.head[0])
    z = _centred(head, head(read_out(model, rows, batch.outputs)))
    size = z.std(dim=0, correction=0).clamp(min=SMALLEST)
    head.weight.div_(size.unsqueeze(1))
    head.bias.div_(size)


def _centred(linear: nn.Linear, z: Tensor) -> Tensor:
    """z − mean(z), the mean being taken out of the bias of the map that made z."""
    mean = z.mean(dim=0)
    linear.bias.sub_(mean)
    return z - mean
