"""Where along the path a polynomial is sampled, and how to move between such sets of points.

A polynomial of degree d is its values at any d + 1 points; we take the Chebyshev–Lobatto points

    τ_k = (1 + sin(π(2k − d) / 2d)) / 2,   k = 0 … d,

which contain both ends, keep interpolation well conditioned, and are nested: those of degree d are every
second one of those of degree 2d. The values at other points t_j follow by barycentric interpolation
(Berrut and Trefethen, 2004),

    p(t_j) = Σ_k R_jk p(τ_k),   R_jk = (v_k / (t_j − τ_k)) / Σ_i v_i / (t_j − τ_i),   v_k = Π_{i≠k} 1 / (τ_k − τ_i).

In the end only the values at a few chosen points are wanted (those of a quadrature rule). So no polynomial is ever
sampled at more points than those: `Grid` gives d + 1 Lobatto points while that is fewer, and the wanted points after.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Resolution:
    """A set of sample points in [0, 1]."""

    points: tuple[float, ...]

    def __len__(self) -> int:
        """How many samples."""
        return len(self.points)


@lru_cache(maxsize=256)
def lobatto(degree: int) -> Resolution:
    """The degree + 1 Chebyshev–Lobatto points.

    >>> [float(tau) for tau in lobatto(2).points]
    [0.0, 0.5, 1.0]
    """
    if degree == 0:
        return Resolution((0.5,))
    k = np.arange(degree + 1)
    return Resolution(tuple((1 + np.sin(np.pi * (2 * k - degree) / (2 * degree))) / 2))


@lru_cache(maxsize=1024)
def _barycentric(source: Resolution, target: Resolution) -> NDArray[np.float64]:
    tau, t = np.asarray(source.points), np.asarray(target.points)
    gaps = 4 * (
        tau[:, None] - tau[None, :]
    )  # the capacity of [0, 1] is 1/4: products neither vanish nor explode
    np.fill_diagonal(gaps, 1.0)
    v = 1 / gaps.prod(axis=1)
    difference = t[:, None] - tau[None, :]
    hit = difference == 0
    terms = v / np.where(hit, 1.0, difference)
    on_a_node = hit.any(axis=1, keepdims=True)
    terms = np.where(on_a_node, hit, terms)
    return terms / terms.sum(axis=1, keepdims=True)


@lru_cache(maxsize=1024)
def interpolation(source: Resolution, target: Resolution, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The matrix R [len(target), len(source)] that turns samples into samples, rounded once to the dtype.

    >>> interpolation(lobatto(1), lobatto(2), torch.float64, torch.device("cpu"))
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000],
            [0.0000, 1.0000]], dtype=torch.float64)
    """
    return torch.from_numpy(_barycentric(source, target)).to(dtype=dtype, device=device)


@dataclass(frozen=True, slots=True)
class Grid:
    """How finely to sample, given the points at which the values are wanted in the end.

    >>> grid = Grid(Resolution((0.1, 0.4, 0.9)))
    >>> len(grid.at(1)), grid.at(1) == lobatto(1), grid.at(2) == grid.wanted
    (2, True, True)
    """

    wanted: Resolution

    def at(self, degree: int) -> Resolution:
        """The resolution of a polynomial of this degree."""
        return lobatto(degree) if degree + 1 < len(self.wanted) else self.wanted
