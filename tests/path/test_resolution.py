"""Sample points and interpolation between them."""

import numpy as np
import pytest
import torch

from apexgnn.path import Grid, Resolution, interpolation, lobatto, quadrature

CPU = torch.device("cpu")


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 8, 16, 32])
def test_points_are_nested_and_contain_the_ends(degree):
    coarse, fine = lobatto(degree).points, lobatto(2 * degree).points
    assert coarse == fine[::2]
    assert coarse[0] == 0
    assert coarse[-1] == 1


@pytest.mark.parametrize("degree", [1, 2, 3, 5, 8, 16, 32])
def test_interpolation_reproduces_polynomials_of_its_degree_only(degree):
    source, target = lobatto(degree), Resolution(tuple(quadrature("gauss-legendre", degree + 3).nodes))
    matrix = interpolation(source, target, torch.float64, CPU).numpy()
    tau, t = 2 * np.array(source.points) - 1, 2 * np.array(target.points) - 1
    for k in range(degree + 1):
        basis = np.polynomial.legendre.Legendre.basis(k)
        np.testing.assert_allclose(matrix @ basis(tau), basis(t), atol=1e-13)
    missed = np.polynomial.legendre.Legendre.basis(degree + 1)
    assert np.abs(matrix @ missed(tau) - missed(t)).max() > 1e-2


@pytest.mark.parametrize("degree", [2, 8, 32, 63])
def test_interpolation_is_well_conditioned(degree):
    matrix = interpolation(lobatto(degree), lobatto(2 * degree), torch.float64, CPU)
    assert float(matrix.abs().sum(1).max()) < 4  # Lebesgue constant (2/π) log d + 1


def test_points_in_common_are_copied_exactly():
    matrix = interpolation(lobatto(4), lobatto(8), torch.float32, CPU)
    assert torch.equal(matrix[::2], torch.eye(5))


def test_never_more_samples_than_wanted_points():
    grid = Grid(Resolution(tuple(quadrature("gauss-legendre", 8).nodes)))
    assert [len(grid.at(d)) for d in (1, 2, 4, 8, 16)] == [2, 3, 5, 8, 8]
