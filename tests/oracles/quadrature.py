"""Gauss–Legendre on [0, 1] with correctly rounded nodes and weights, from ball arithmetic."""

import numpy as np
from flint import arb, ctx


def gauss_legendre(points):
    """Nodes in rising order and weights, each the float64 nearest to the true value."""
    before, ctx.prec = ctx.prec, 256
    try:
        pairs = [arb.legendre_p_root(points, k, weight=True) for k in range(points)]
        halves = [((node + 1) / 2, weight / 2) for node, weight in pairs]
    finally:
        ctx.prec = before
    nodes, weights = np.array([[float(a), float(b)] for a, b in halves]).T
    return nodes[::-1].copy(), weights[::-1].copy()
