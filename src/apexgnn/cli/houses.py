"""A small PolyGIN that finds the houses of BA-Shapes, trained in seconds.

Two things make it quick and its explanations easy to read. Every scale s starts at 1/max|W₁a|, so that the
polynomials begin where they are tame. And the loss is

    cross entropy + λ · mean f(0)²

whose second term asks a graph without features to say nothing: zero is then a baseline with a meaning, and the
shares that start from it add up to the whole score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from apexgnn.aggregation import aggregate
from apexgnn.data.ba_shapes import generate
from apexgnn.data.splits import Split, random_split
from apexgnn.errors import TrainingError
from apexgnn.nn import PolyGIN, PolyGINConv

EPOCHS, RATE, SILENCE, CLIP = 1000, 2e-2, 0.03, 1.0
ROLES = ("base", "middle of a house", "bottom of a house", "top of a house")


@dataclass(frozen=True, slots=True, eq=False)
class Houses:
    """A trained model with its graph, in float64, and how often it is right on each part of the nodes."""

    model: PolyGIN
    data: Data
    split: Split
    accuracy: dict[str, float]


def train(seed: int, *, epochs: int = EPOCHS, report: Callable[[float], None] | None = None) -> Houses:
    """Generate the graph and train; all that is random comes from the seed.

    Args:
        seed: of the graph, the split and the weights.
        epochs: steps, each on the whole graph.
        report: called with the loss after every step.
    """
    data = generate(seed)
    assert data.x is not None
    assert data.edge_index is not None
    split = random_split(data.x.size(0), seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = PolyGIN(data.x.size(1), len(ROLES), hidden_channels=32, task="node", dropout=0.0)
    _tame(model, data)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    nothing = torch.zeros_like(data.x)
    for _ in range(epochs):
        logits = model(data.x, data.edge_index)
        silence = model(nothing, data.edge_index).square().mean()
        loss = cross_entropy(logits[split.train], data.y[split.train]) + SILENCE * silence
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        schedule.step()
        if report is not None:
            report(loss.item())
    if not torch.isfinite(loss):
        raise TrainingError("Training diverged. To fix: try another --seed.")
    model, data.x = model.double().eval(), data.x.double()
    with torch.no_grad():
        right = (model(data.x, data.edge_index).argmax(dim=1) == data.y).double()
    parts = {"training": split.train, "validation": split.val, "test": split.test}
    return Houses(model, data, split, {name: float(right[part].mean()) for name, part in parts.items()})


@torch.no_grad()
def _tame(model: PolyGIN, data: Data) -> None:
    h = data.x
    for conv in model.convs:
        assert isinstance(conv, PolyGINConv)
        z = conv.lin1((1 + conv.eps) * h + aggregate(h, data.edge_index))
        conv.norm.scale.copy_(1 / z.abs().amax(dim=0))
        h = conv.lin2(conv.act(conv.norm(z)))
