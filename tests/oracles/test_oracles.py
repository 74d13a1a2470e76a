"""The oracles themselves, against numbers worked out by hand and against each other."""

from fractions import Fraction

import numpy as np
import pytest

from oracles.colours import BICYCLOPENTYL, DECALIN, HEXAGON, TWO_TRIANGLES, refine
from oracles.plain import PlainLayer, PlainModel, forward
from oracles.quadrature import gauss_legendre
from oracles.rational import exact


def layer(w1, w2, theta, *, eps=0.0, scale=None, b1=None, b2=None):
    w1, w2, theta = (np.array(v, dtype=float) for v in (w1, w2, theta))
    zeros1, zeros2 = np.zeros(len(w1)), np.zeros(len(w2))
    scale = np.ones(len(w1)) if scale is None else np.array(scale, dtype=float)
    return PlainLayer(w1, zeros1 if b1 is None else b1, scale, theta, w2, zeros2 if b2 is None else b2, eps)


IDENTITY = layer([[1]], [[1]], [0])


def test_a_product_is_shared_in_halves():
    """W₁ = [[1, 1], [1, −1]], W₂ = [1, −1]: f = 2x₂ + 4θx₁x₂, so φ = (2θx₁x₂, 2x₂ + 2θx₁x₂) from zero."""
    model = PlainModel((), layer([[1, 1], [1, -1]], [[1, -1]], [0.75, 0.75]), "mean")
    phi, path = exact(model, [[3.0, 5.0]], [], np.zeros((1, 2)), target=0)
    assert phi.tolist() == [[Fraction(45, 2), Fraction(65, 2)]]
    assert path.degree() == 2


def test_a_product_from_another_baseline():
    """f = 2x₂ + 4θx₁x₂ from (1, 1) to (3, 5): ∫(1 + 4τ) dτ = 3, ∫(1 + 2τ) dτ = 2, so φ = (6·4θ, 8 + 8·4θ)."""
    model = PlainModel((), layer([[1, 1], [1, -1]], [[1, -1]], [0.25, 0.25]), "mean")
    phi, _ = exact(model, [[3.0, 5.0]], [], np.ones((1, 2)), target=0)
    assert phi.tolist() == [[6, 16]]


@pytest.mark.parametrize("readout, share", [("sum", Fraction(1)), ("mean", Fraction(1, 2))])
def test_one_edge_by_hand(readout, share):
    """0 → 1 with σ(z) = z + z²: f = x₀ + x₀² + (x₀ + x₁) + (x₀ + x₁)², in one feature, at x = (2, 3)."""
    model = PlainModel((layer([[1]], [[1]], [1]),), IDENTITY, readout)
    phi, path = exact(model, [[2.0], [3.0]], [(0, 1)], np.zeros((2, 1)), target=0)
    assert phi.tolist() == [[2 * (2 + 2 + 5) * share], [3 * (1 + 5) * share]]
    assert (path(1).p, path(1).q) == (int(36 * share), 1)


def test_eps_scale_biases_and_edge_weight_by_hand():
    """Node 1 of 0 → 1: a = 1.5 x₁ + 4 x₀, z = 2(a + 1), h = z + z²/2 − 1; x = (1, 2): z = 16, h = 143."""
    one = layer([[1]], [[1]], [0.5], eps=0.5, scale=[2], b1=np.array([1.0]), b2=np.array([-1.0]))
    model = PlainModel((one,), IDENTITY, None)
    phi, path = exact(model, [[1.0], [2.0]], [(0, 1)], np.zeros((2, 1)), target=0, node=1, weights=[4.0])
    mean_slope = 2 * (1 + Fraction(2 + 16, 2))
    assert phi.tolist() == [[4 * mean_slope], [3 * mean_slope]]
    assert (int(path(1).p), int(path(0).p)) == (143, 3)


@pytest.mark.parametrize("readout", ["mean", "sum", None])
def test_exact_sums_agree_with_the_dense_forward_pass(readout):
    rng = np.random.default_rng(5)

    def drawn(inside, out):
        w1, w2 = rng.normal(size=(3, inside)), rng.normal(size=(out, 3))
        b1, b2 = rng.normal(size=3), rng.normal(size=out)
        return PlainLayer(w1, b1, rng.normal(size=3), rng.normal(size=3), w2, b2, 0.25)

    model = PlainModel((drawn(2, 3),), drawn(3, 2), readout)
    x, baseline = rng.normal(size=(2, 3, 2))
    edges, weights = [(0, 1), (1, 0), (1, 2), (2, 2), (0, 1)], rng.normal(size=5)
    node = None if readout else 1
    phi, path = exact(model, x, edges, baseline, target=1, node=node, weights=weights)
    ends = [forward(model, at, edges, weights)[node or 0, 1] for at in (x, baseline)]
    assert path.degree() == 4
    assert phi.sum() == Fraction(int(path(1).p), int(path(1).q)) - Fraction(int(path(0).p), int(path(0).q))
    assert float(phi.sum()) == pytest.approx(ends[0] - ends[1], rel=1e-13)


@pytest.mark.parametrize("points", [1, 2, 3, 8, 32])
def test_quadrature_is_exact_to_its_degree_and_no_further(points):
    nodes, weights = gauss_legendre(points)
    assert np.all(np.diff(nodes) > 0)
    for degree in range(2 * points):
        assert weights @ nodes**degree == pytest.approx(1 / (degree + 1), rel=4e-15)
    if points <= 8:
        assert weights @ nodes ** (2 * points) != pytest.approx(1 / (2 * points + 1), rel=1e-13)


def test_known_points():
    nodes, weights = gauss_legendre(2)
    assert nodes == pytest.approx([0.5 - 12**-0.5, 0.5 + 12**-0.5], abs=1e-16)
    assert weights.tolist() == [0.5, 0.5]


def test_colours_of_a_path_and_of_the_classic_pairs():
    path = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    assert refine(["C"] * 4, path, 2)[-1] == [0, 1, 1, 0]
    assert refine(["C", "C", "C", "O"], path, 3)[-1] == [0, 1, 2, 3]
    for first, second, nodes in [(TWO_TRIANGLES, HEXAGON, 6), (DECALIN, BICYCLOPENTYL, 10)]:
        both = first + [(u + nodes, v + nodes) for u, v in second]
        for colours in refine([0] * 2 * nodes, both, 8):
            assert sorted(colours[:nodes]) == sorted(colours[nodes:])
