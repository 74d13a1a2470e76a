"""Polynomials along the path, held as planes [c, rows, channels]: coefficients while short, samples when long.

Up to degree 4 a polynomial is its coefficients of t, with t = τ from a zero baseline and t = 2τ − 1 from any other,
since powers of t are best conditioned about the middle. From degree 8 on it is its values at Gauss–Legendre
points and at τ = 1: powers of such degree would lose digits to cancellation, and values lose none.

The activation σ(w) = w + w²/2, its derivative y = 1 + w and the adjoint of multiplying by y are, by coefficients,

    u[c] = Σ_{i<j, i+j=c} y[i] y[j] + ½ y[c/2]²  (c > 0),     u[0] = w[0] + ½ w[0]²
    ∂/∂w[j] = Σ_c g[j + c] y[c]

and by values, at as many points as u needs: u = w + w²/2, ∂/∂w = Pᵀ(g y), where `widen` leads from the planes of w to
these points and `narrow` is Pᵀ. Of the adjoint there are as many planes as w has degrees: a perturbation of
coefficient 0 of the input reaches w with one degree less.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from apexgnn.path.quadrature import quadrature
from apexgnn.path.resolution import Resolution, interpolation

LONGEST = 4  # degree up to which a polynomial is held by coefficients
CPU = torch.device("cpu")


def by_values(layer: int, layers: int) -> bool:
    """Whether u of this layer is held by its values; the last layer's always is, since the scores want values.

    >>> [by_values(layer, 3) for layer in range(3)]
    [False, False, True]
    """
    return 2 ** (layer + 1) > LONGEST or layer + 1 == layers


def activate(w: Tensor, *, lowest: int, out: Tensor) -> Tensor:
    """Coefficients `lowest` … 2n of u = σ(w); w itself becomes y = σ′(w) = 1 + w.

    >>> w = torch.tensor([[[1.0]], [[2.0]]])  # 1 + 2t: u = 3/2 + 4t + 2t², y = 2 + 2t
    >>> activate(w, lowest=0, out=torch.empty(3, 1, 1)).flatten().tolist(), w.flatten().tolist()
    ([1.5, 4.0, 2.0], [2.0, 2.0])
    """
    n = len(w) - 1
    if lowest == 0:
        torch.addcmul(w[0], w[0], w[0], value=0.5, out=out[0])
    w[0] += 1
    first = max(lowest, 1)
    if first <= n:
        torch.mul(w[first:], w[0], out=out[first - lowest : n + 1 - lowest])
    highest = out[n + 1 - lowest :]  # coefficients n + 1 … 2n, by w[n]
    torch.mul(w[1:], w[n], out=highest)
    highest[-1] *= 0.5
    for i in range(1, n):
        square = out[2 * i - lowest]
        torch.addcmul(square, w[i], w[i], value=0.5, out=square)
        if i + 1 < n:
            products = out[2 * i + 1 - lowest : n + i - lowest]
            torch.addcmul(products, w[i + 1 : n], w[i], out=products)
    return out


def pull_back(g: Tensor, y: Tensor, *, lowest: int, out: Tensor) -> Tensor:
    """Coefficients 0 … n − 1 of the adjoint of w from coefficients `lowest` … 2n − 1 of that of u.

    With lowest = 1 the part of g[0] is left out.

    >>> y, g = torch.tensor([[[2.0]], [[3.0]]]), torch.tensor([[[5.0]], [[7.0]]])
    >>> pull_back(g, y, lowest=0, out=torch.empty(1, 1, 1)).item()
    31.0
    """
    n = len(y) - 1
    torch.mul(g[1 - lowest : n + 1 - lowest], y[1], out=out)
    if lowest == 0:
        torch.addcmul(out, g[:n], y[0], out=out)
    elif n > 1:
        torch.addcmul(out[1:], g[: n - 1], y[0], out=out[1:])
    for c in range(2, n + 1):
        torch.addcmul(out, g[c - lowest : n + c - lowest], y[c], out=out)
    return out


def _gauss(points: int) -> tuple[float, ...]:
    return tuple(quadrature("gauss-legendre", points).nodes)


@lru_cache(maxsize=256)
def widen(degree: int, *, start: int, ends: bool, dtype: torch.dtype) -> Tensor:
    """From the planes of w to the values of w at the 2n Gauss–Legendre points, at τ = 1 and, for both ends, τ = 0.

    >>> widen(1, start=0, ends=True, dtype=torch.float64)[-2:].tolist()  # coefficients 1, t at τ = 1 and τ = 0
    [[1.0, 1.0], [1.0, 0.0]]
    """
    points = (*_gauss(2 * degree), 1.0, 0.0)[: 2 * degree + 1 + ends]
    return _basis(degree, points, start=start, dtype=dtype, values=(*_gauss(degree), 1.0))


@lru_cache(maxsize=256)
def narrow(degree: int, *, start: int, dtype: torch.dtype) -> Tensor:
    """Pᵀ [n, 2n], from the adjoint at the 2n Gauss–Legendre points to the planes of the adjoint of w.

    >>> narrow(1, start=0, dtype=torch.float64).tolist()  # w has degree 1, its perturbation is constant
    [[1.0, 1.0]]
    """
    return _basis(
        degree - 1, _gauss(2 * degree), start=start, dtype=dtype, values=_gauss(degree), of=degree
    ).t()


def _basis(
    degree: int,
    points: tuple[float, ...],
    *,
    start: int,
    dtype: torch.dtype,
    values: tuple[float, ...],
    of: int | None = None,
) -> Tensor:
    """[points, degree + 1], the functions by whose multiples a polynomial is held: powers of t, or Lagrange's."""
    if (of or degree) > LONGEST:
        return interpolation(Resolution(values), Resolution(points), dtype, CPU)
    tau = np.asarray(points)
    t = tau if start == 0 else 2 * tau - 1
    return torch.from_numpy(np.vander(t, degree + 1, increasing=True)).to(dtype)
