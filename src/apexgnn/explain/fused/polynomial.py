"""Polynomials in t held as planes: p(t) = Σ_c p[c] t^c, each p[c] a matrix of rows × channels.

The activation σ(w) = w + w²/2, its derivative y = 1 + w, and the adjoint of multiplying by y:

    u = σ(w):     u[c] = Σ_{i<j, i+j=c} y[i] y[j] + ½ y[c/2]²  (c > 0),     u[0] = w[0] + ½ w[0]²
    adjoint:      ∂/∂w[j] = Σ_c g[j + c] y[c]

Only the planes that are wanted are formed: of u those from `lowest` on, and of the adjoint as many as w has
degrees, since a perturbation of coefficient 0 of the input does not reach the highest coefficient of w.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
