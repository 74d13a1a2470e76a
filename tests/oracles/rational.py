"""Aumann–Shapley values of a PolyGIN without any rounding: polynomials over the rationals, dual numbers, ∫₀¹.

A float is a dyadic rational, so the weights, X and X′ are taken as the exact rationals that they are. Along
γ(τ) = X′ + τ(X − X′) every number in the network is a polynomial in τ, and to differentiate by one input
coordinate i it carries a second one:

    p + q·e,   e² = 0,   γ_i(τ) = X′_i + τ(X_i − X′_i) + e

Then φ_i = (X_i − X′_i) ∫₀¹ q dτ, where q is what the score carries. One pass per coordinate, nothing clever.
"""

from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_poly


class Dual:
    """p + q·e with polynomials p and q."""

    def __init__(self, p, q=None):
        self.p = fmpq_poly(p)
        self.q = fmpq_poly(0) if q is None else fmpq_poly(q)

    def __add__(self, other):
        return Dual(self.p + other.p, self.q + other.q)

    def __mul__(self, other):
        return Dual(self.p * other.p, self.p * other.q + self.q * other.p)

    def scaled(self, number):
        return Dual(self.p * number, self.q * number)


def rational(number):
    """A float as the rational that it is."""
    return fmpq(*float(number).as_integer_ratio())


def total(numbers):
    result = Dual(0)
    for number in numbers:
        result = result + number
    return result


def linear(row, weight, bias):
    """W h + b for one node."""
    return [
        total(h.scaled(rational(w)) for h, w in zip(row, line, strict=True)) + Dual([rational(b)])
        for line, b in zip(weight, bias, strict=True)
    ]


def block(layer, row):
    """W₂ σ(s ⊙ (W₁ a + b₁)) + b₂ for one node."""
    z = [h.scaled(rational(s)) for h, s in zip(linear(row, layer.w1, layer.b1), layer.scale, strict=True)]
    u = [h + (h * h).scaled(rational(t)) for h, t in zip(z, layer.theta, strict=True)]
    return linear(u, layer.w2, layer.b2)


def score(model, rows, edges, weights, *, target, node):
    """The explained logit of a network of duals."""
    weights = [1.0] * len(edges) if weights is None else weights
    for layer in model.layers:
        summed = [[h.scaled(1 + rational(layer.eps)) for h in row] for row in rows]
        for (u, v), w in zip(edges, weights, strict=True):
            summed[v] = [a + h.scaled(rational(w)) for a, h in zip(summed[v], rows[u], strict=True)]
        rows = [block(layer, row) for row in summed]
    if model.readout is None:
        return block(model.head, rows[node])[target]
    share = fmpq(1, len(rows)) if model.readout == "mean" else fmpq(1)
    pooled = [total(column).scaled(share) for column in zip(*rows, strict=True)]
    return block(model.head, pooled)[target]


def as_fraction(number):
    return Fraction(int(number.p), int(number.q))


def exact(model, x, edges, baseline, *, target, node=None, weights=None):
    """φ as an [N, F] array of Fractions, and the polynomial f(γ(τ))."""
    x, baseline = np.asarray(x, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    ends = [
        [(rational(b), rational(a) - rational(b)) for a, b in zip(*rows, strict=True)]
        for rows in zip(x, baseline, strict=True)
    ]
    phi = np.empty(x.shape, dtype=object)
    for i in np.ndindex(*x.shape):
        rows = [
            [Dual([start, step], [int((n, f) == i)]) for f, (start, step) in enumerate(row)]
            for n, row in enumerate(ends)
        ]
        result = score(model, rows, edges, weights, target=target, node=node)
        phi[i] = as_fraction(ends[i[0]][i[1]][1] * result.q.integral()(fmpq(1)))
    return phi, result.p
