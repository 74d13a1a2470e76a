"""The rules against correctly rounded references, and their orders as measured."""

import numpy as np
import pytest

from apexgnn import InputError
from apexgnn.path import Quadrature, quadrature
from oracles.quadrature import gauss_legendre as reference


@pytest.mark.parametrize("points", [1, 2, 3, 4, 8, 16, 32, 64])
def test_gauss_legendre_is_correctly_rounded(points):
    nodes, weights = reference(points)
    rule = quadrature("gauss-legendre", points)
    np.testing.assert_allclose(rule.nodes, nodes, rtol=0, atol=4e-16)
    np.testing.assert_allclose(rule.weights, weights, rtol=2e-12)
    assert rule.nodes.dtype == rule.weights.dtype == np.float64


@pytest.mark.parametrize("rule", list(Quadrature))
@pytest.mark.parametrize("steps", [2, 4, 8, 16])
def test_exact_degree_is_exact_and_no_more(rule, steps):
    built = quadrature(rule, steps)
    for degree in range(built.exact_degree + 2):
        error = abs(built.weights @ built.nodes**degree - 1 / (degree + 1))
        if degree <= built.exact_degree:
            assert error < 1e-14
        elif degree <= 24:  # the next power is missed, by more than rounding
            assert error > 1e-14


@pytest.mark.parametrize(
    "rule, order", [("left", 1), ("right", 1), ("midpoint", 2), ("trapezoid", 2), ("simpson", 4)]
)
def test_convergence_order_is_measured(rule, order):
    steps = np.array([8, 16, 32, 64, 128])
    errors = [
        abs(quadrature(rule, int(n)).weights @ np.exp(quadrature(rule, int(n)).nodes) - np.expm1(1))
        for n in steps
    ]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(-order, abs=0.06)


def test_weights_sum_to_one_and_stay_what_they_are():
    for rule in Quadrature:
        built = quadrature(rule, 6)
        assert built.weights.sum() == pytest.approx(1, abs=1e-15)
        with pytest.raises(ValueError, match="read-only"):
            built.weights[0] = 0


@pytest.mark.parametrize("steps", [0, -1, 2.5, True])
def test_steps_must_count(steps):
    with pytest.raises(InputError, match="steps"):
        quadrature("left", steps)


def test_simpson_needs_an_even_number():
    with pytest.raises(InputError, match="even"):
        quadrature("simpson", 3)


def test_an_unknown_rule_lists_the_known():
    with pytest.raises(InputError, match="'gauss-legendre'"):
        quadrature("romberg", 3)
