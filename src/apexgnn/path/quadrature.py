"""Rules that integrate over [0, 1]: ∫₀¹ g(τ) dτ ≈ Σ_k w_k g(τ_k).

    rule             points          integrates without error      error of smooth g
    left, right      n               degree 0                      O(1/n)
    midpoint         n               degree 1                      O(1/n²)
    trapezoid        n + 1           degree 1                      O(1/n²)
    simpson          n + 1, n even   degree 3                      O(1/n⁴)
    gauss-legendre   n               degree 2n − 1                 geometric

where n is the number of `steps`. The Gauss–Legendre rule with m points is the only one of them that is exact
for every polynomial of degree 2m − 1, which is as high as m points can reach (Golub and Welsch, 1969).
Nodes and weights are float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from apexgnn.errors import InputError

Vector = NDArray[np.float64]


class Quadrature(StrEnum):
    """The rules by name."""

    LEFT = "left"
    RIGHT = "right"
    MIDPOINT = "midpoint"
    TRAPEZOID = "trapezoid"
    SIMPSON = "simpson"
    GAUSS_LEGENDRE = "gauss-legendre"


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Nodes in [0, 1], weights that sum to one, and the highest degree that is integrated without error."""

    nodes: Vector
    weights: Vector
    exact_degree: int

    def __len__(self) -> int:
        """How many evaluations the rule costs."""
        return len(self.nodes)


def _left(n: int) -> Rule:
    return Rule(np.arange(n) / n, np.full(n, 1 / n), 0)


def _right(n: int) -> Rule:
    return Rule(np.arange(1, n + 1) / n, np.full(n, 1 / n), 0)


def _midpoint(n: int) -> Rule:
    return Rule((np.arange(n) + 0.5) / n, np.full(n, 1 / n), 1)


def _trapezoid(n: int) -> Rule:
    weights = np.full(n + 1, 1 / n)
    weights[[0, -1]] /= 2
    return Rule(np.arange(n + 1) / n, weights, 1)


def _simpson(n: int) -> Rule:
    if n % 2:
        raise InputError("steps", got=str(n), expected="an even number of intervals for simpson")
    weights = np.full(n + 1, 2 / (3 * n))
    weights[1::2] *= 2
    weights[[0, -1]] /= 2
    return Rule(np.arange(n + 1) / n, weights, 3)


def _gauss_legendre(n: int) -> Rule:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return Rule((nodes + 1) / 2, weights / 2, 2 * n - 1)


_RULES: dict[Quadrature, Callable[[int], Rule]] = {
    Quadrature.LEFT: _left,
    Quadrature.RIGHT: _right,
    Quadrature.MIDPOINT: _midpoint,
    Quadrature.TRAPEZOID: _trapezoid,
    Quadrature.SIMPSON: _simpson,
    Quadrature.GAUSS_LEGENDRE: _gauss_legendre,
}


@lru_cache(maxsize=256)
def quadrature(name: str, steps: int) -> Rule:
    """The named rule with this many steps.

    >>> rule = quadrature("gauss-legendre", 2)
    >>> round(float(rule.weights @ rule.nodes**3), 15)  # ∫ τ³ dτ, without error
    0.25
    """
    try:
        build = _RULES[Quadrature(name)]
    except ValueError:
        valid = ", ".join(repr(str(q)) for q in Quadrature)
        raise InputError("rule", got=repr(name), expected=f"one of {valid}") from None
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise InputError("steps", got=repr(steps), expected="a whole number of at least 1")
    rule = build(int(steps))
    rule.nodes.setflags(write=False)
    rule.weights.setflags(write=False)
    return rule
