"""A PolyGIN's weights as plain float64 arrays, read off its state by name, and a dense forward pass.

Every float32 is a float64, so nothing is rounded on the way.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PlainLayer:
    """h = W₂ σ(s ⊙ (W₁ a + b₁)) + b₂, σ(z) = z + θ z²; the head has s = 1 and no ε."""

    w1: np.ndarray
    b1: np.ndarray
    scale: np.ndarray
    theta: np.ndarray
    w2: np.ndarray
    b2: np.ndarray
    eps: float = 0.0


@dataclass(frozen=True)
class PlainModel:
    """Layers and head; `readout` is None for a node task."""

    layers: tuple[PlainLayer, ...]
    head: PlainLayer
    readout: str | None


def plain(state, *, readout):
    """From a state dict of tensors."""
    array = {key: np.asarray(value.tolist(), dtype=np.float64) for key, value in state.items()}
    layers = []
    while f"convs.{len(layers)}.lin1.weight" in array:
        own = f"convs.{len(layers)}."
        names = ("lin1.weight", "lin1.bias", "norm.scale", "act.theta", "lin2.weight", "lin2.bias")
        w1, b1, scale, theta, w2, b2 = (array[own + name] for name in names)
        theta = np.broadcast_to(theta, b1.shape)
        layers.append(PlainLayer(w1, b1, scale, theta, w2, b2, float(array[own + "eps"])))
    w1, b1, theta, w2, b2 = (
        array["head." + name] for name in ("0.weight", "0.bias", "1.theta", "3.weight", "3.bias")
    )
    head = PlainLayer(w1, b1, np.ones_like(b1), np.broadcast_to(theta, b1.shape), w2, b2)
    return PlainModel(tuple(layers), head, readout)


def adjacency(nodes, edges, weights=None):
    """A[v, u] = sum of the weights of the edges u → v."""
    matrix = np.zeros((nodes, nodes))
    for position, (u, v) in enumerate(edges):
        matrix[v, u] += 1.0 if weights is None else weights[position]
    return matrix


def forward(model, x, edges, weights=None):
    """Logits of one graph: [1, classes], or [N, classes] for a node task."""

    def block(layer, rows):
        z = layer.scale * (rows @ layer.w1.T + layer.b1)
        return (z + layer.theta * z**2) @ layer.w2.T + layer.b2

    h, a = np.asarray(x, dtype=np.float64), adjacency(len(x), edges, weights)
    for layer in model.layers:
        h = block(layer, (1 + layer.eps) * h + a @ h)
    if model.readout is not None:
        h = (h.mean(axis=0) if model.readout == "mean" else h.sum(axis=0))[None]
    return block(model.head, h)
