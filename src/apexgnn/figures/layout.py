"""Where to put the nodes: as far apart on paper as they are in the graph.

Minimises the stress Σ_{i<j} (|p_i − p_j| − d_ij)² / d_ij², where d_ij counts edges on the shortest path, by
majorisation (SMACOF): with the weighted Laplacian L of the w_ij = 1/d_ij², every step

    p ← L⁺ B(p) p,     B_ij = −w_ij d_ij / |p_i − p_j|,   rows of B sum to zero

lowers it. It starts from classical scaling, the best plane through the points that have these distances.
Deterministic; needs only numpy. Gansner, Koren and North (2004).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STEPS = 300


def distances(edges: NDArray[np.int64], nodes: int) -> Array:
    """Edges on the shortest path, directions ignored; parts that are not joined lie a little farther apart.

    >>> distances(np.array([[0, 1], [1, 2]]), 4)[0].tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    d = np.full((nodes, nodes), np.inf)
    d[edges[0], edges[1]] = d[edges[1], edges[0]] = 1
    np.fill_diagonal(d, 0)
    for k in range(nodes):
        d = np.minimum(d, d[:, k, None] + d[k])
    finite = np.isfinite(d)
    return np.where(finite, d, d[finite].max() + 1)


def stress_layout(edges: NDArray[np.int64], nodes: int) -> Array:
    """Positions [nodes, 2], an edge being about 1 long, centred.

    >>> square = stress_layout(np.array([[0, 1, 2, 3], [1, 2, 3, 0]]), 4)
    >>> sides = np.linalg.norm(square - np.roll(square, 1, axis=0), axis=1)
    >>> bool(np.ptp(sides) < 1e-6)
    True
    """
    d = distances(edges, nodes)
    weight = 1 / np.where(d > 0, d, np.inf) ** 2
    inverse = np.linalg.pinv(np.diag(weight.sum(1)) - weight)
    p = _classical(d)
    for _ in range(STEPS):
        apart = np.linalg.norm(p[:, None] - p[None], axis=2)
        pull = -weight * d / np.maximum(apart, 1e-9)
        np.fill_diagonal(pull, 0)
        np.fill_diagonal(pull, -pull.sum(1))
        p = inverse @ (pull @ p)
    centred: Array = p - p.mean(axis=0)
    return centred


def _classical(d: Array) -> Array:
    """The two leading eigenvectors of the doubly centred squared distances, nudged so that no two coincide."""
    centre = np.eye(len(d)) - 1 / len(d)
    values, vectors = np.linalg.eigh(-centre @ d**2 @ centre / 2)
    angle = 2 * np.pi * np.arange(len(d)) * 0.381966
    nudge = 0.05 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    p = np.zeros((len(d), 2))
    kept = min(2, len(d))
    p[:, :kept] = vectors[:, -kept:] * np.sqrt(np.maximum(values[-kept:], 0))
    return p + nudge


def upright(places: Array, *, tip: int | None, base: Sequence[int] = ()) -> Array:
    """Turn the whole so that the tip stands above the middle of the base (of everything, if there is no base).

    >>> upright(np.array([[0.0, 0.0], [2.0, 0.0]]), tip=1).round(6).tolist()
    [[0.0, -1.0], [0.0, 1.0]]
    """
    centred: Array = places - places.mean(axis=0)
    if tip is None:
        return centred
    x, y = centred[tip] - centred[list(base) or slice(None)].mean(axis=0)
    length = float(np.hypot(x, y))
    if length > 1e-9:
        centred = centred @ (np.array([[y, -x], [x, y]]) / length).T
    return centred
