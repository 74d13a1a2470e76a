"""Polynomials in t held as planes: p(t) = Σ_c p[c] t^c with p[c] a matrix of rows × channels.

σ(z) = z + θz² and its derivative y = 1 + 2θz:

    u = σ(z):      u[c] = ½ Σ_{i+j=c} z[i] y[j]  (+ ½ z[c])                      degree 2n from degree n
    adjoint:       ∂/∂z[j] = Σ_c ḡ[j + c] y[c]                                     the transpose of multiplying by y

Only the planes that are wanted are formed: u from coefficient `lowest` on, and of the adjoint the n that a
perturbation of the input reaches (it perturbs coefficient 0 of the input, hence 0 … n − 1 of z).
"""

from __future__ import annotations

import torch
from torch import Tensor


def derivative(z: Tensor, two_theta: Tensor, *, out: Tensor) -> Tensor:
    """y = 1 + 2θz."""
    torch.mul(z, two_theta, out=out)
    out[0] += 1
    return out


def activation(z: Tensor, y: Tensor, *, lowest: int, out: Tensor) -> Tensor:
    """Coefficients `lowest` … 2n of z + θz², where y = 1 + 2θz.

    >>> z = torch.tensor([[[1.0]], [[2.0]]])                       # 1 + 2t, θ = ½: u = 3/2 + 4t + 2t²
    >>> activation(z, torch.tensor([[[2.0]], [[2.0]]]), lowest=0, out=torch.empty(3, 1, 1)).flatten().tolist()
    [1.5, 4.0, 2.0]
    """
    n = len(z) - 1
    first = max(lowest, 1)
    if first <= n:
        torch.mul(z[first:], y[0], out=out[first - lowest : n + 1 - lowest])
    if lowest == 0:
        torch.addcmul(z[0], z[0], y[0], out=out[0])
        out[0] *= 0.5
    high = out[n + 1 - lowest :]  # coefficients n + 1 … 2n
    torch.mul(z[n], y[1:], out=high)
    high[-1] *= 0.5
    for i in range(1, n):
        square = out[2 * i - lowest]
        torch.addcmul(square, z[i], y[i], value=0.5, out=square)
        if i + 1 < n:
            cross = out[2 * i + 1 - lowest : n + i - lowest]
            torch.addcmul(cross, z[i + 1 : n], y[i], out=cross)
    return out


def pull_back(g: Tensor, y: Tensor, *, lowest: int, out: Tensor) -> Tensor:
    """Coefficients 0 … n − 1 of the adjoint of z, from those `lowest` … 2n − 1 of u (lowest is 0 or 1).

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


def moments(rows: int, columns: int, *, start: int, dtype: torch.dtype) -> Tensor:
    """[rows, columns], the mean of t^(i+j) for t between `start` (0 or −1) and 1.

    >>> moments(2, 2, start=0, dtype=torch.float64).tolist()
    [[1.0, 0.5], [0.5, 0.3333333333333333]]
    >>> moments(2, 2, start=-1, dtype=torch.float64).tolist()
    [[1.0, 0.0], [0.0, 0.3333333333333333]]
    """
    power = torch.arange(rows, dtype=torch.float64)[:, None] + torch.arange(columns, dtype=torch.float64)
    mean = 1 / (power + 1)
    return (mean if start == 0 else mean * (power % 2 == 0)).to(dtype)
