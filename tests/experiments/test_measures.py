"""What is computed from cells, against hand calculation, brute force and scipy."""

import csv

import numpy as np
import pytest
import torch
from scipy import stats
from torch_geometric.data import Data

from apexgnn import integrated_gradients
from apexgnn.experiments import areas, claims, completeness, convergence, structures, tables, why
from apexgnn.experiments.completeness import DTYPES
from apexgnn.metrics.protocol import SPARSITIES
from apexgnn.nn import GIN, PolyGIN


def test_the_area_by_hand():
    values = np.array([[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], [1.0, 0, 0, 0, 0, 0, 0, 0, 0]])
    by_hand = [0.4, (0.5 * 1.0 * 0.1) / 0.8]
    np.testing.assert_allclose(areas.area(values), by_hand, rtol=1e-12)
    assert len(SPARSITIES) == values.shape[1]


def test_the_bootstrap_draws_graphs_not_values():
    """Against the resampling written out: a graph's values come together or not at all."""
    rng = np.random.default_rng(5)
    ids = [[3, 8, 1, 4], [8, 3, 9], [4, 9, 2, 8]]
    values = [rng.normal(size=len(i)) for i in ids]
    mean, low, high, graphs = areas.clustered(values, ids)
    flat, owner = np.concatenate(values), np.concatenate(ids)
    assert graphs == len(set(owner.tolist())) == 6
    assert mean == pytest.approx(flat.mean())
    names, means = np.unique(owner), []
    for _ in range(20_000):
        drawn = rng.choice(names, size=len(names))
        bag = np.concatenate([flat[owner == name] for name in drawn])
        means.append(bag.mean())
    np.testing.assert_allclose((low, high), np.quantile(means, (0.025, 0.975)), atol=0.05)


def test_the_bootstrap_is_not_fooled_by_copies():
    """Three identical seeds are no more evidence than one."""
    rng = np.random.default_rng(0)
    values, ids = rng.normal(size=40), range(40)
    once, thrice = areas.clustered([values], [ids]), areas.clustered([values] * 3, [ids] * 3)
    np.testing.assert_allclose(once[:3], thrice[:3], atol=1e-12)


def test_missing_values_are_left_out():
    found = areas.clustered([np.array([1.0, np.nan, 3.0])], [[0, 1, 2]])
    assert found[0] == 2.0
    assert found[3] == 2
    assert np.isnan(areas.clustered([np.array([np.nan])], [[0]])[0])


@pytest.mark.parametrize("p", [1, 2, 4])
def test_orders_of_known_functions(p):
    n = (8, 16, 32, 64, 128, 256)
    errors = [3.0 * k**-p * (1 + 1e-3 / k) for k in n]
    assert convergence.order(n, errors, 1e-14) == pytest.approx(p, abs=1e-3)


def test_orders_stop_at_the_floor():
    n = (16, 32, 64, 128, 256)
    assert convergence.order(n, [16**-4, 32**-4, 64**-4, 1e-9, 1e-9], 1e-9) == pytest.approx(4, abs=1e-6)


def test_points_needed_wants_all_larger_rules_to_agree():
    errors = {str(n): 1e-9 for n in range(1, 17)} | {"5": 1.0}
    assert convergence.points_needed(errors, 1e-8) == 6
    assert convergence.points_needed({str(n): 1.0 for n in range(1, 17)}, 1e-8) is None


@pytest.mark.parametrize("kind", [PolyGIN, GIN])
def test_errors_are_the_residuals_of_integrated_gradients(kind):
    torch.manual_seed(0)
    model = kind(3, 2, hidden_channels=6).double().eval()
    graph = Data(x=torch.randn(5, 3).double(), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    found, _ = completeness.errors(model, graph)
    for rule, by_nfe in found.items():
        if rule == "exact":
            continue
        for nfe in (2, 8) if rule in ("right", "gauss-legendre") else (3, 17):
            steps = nfe if rule in ("right", "gauss-legendre") else nfe - 1
            theirs = integrated_gradients(model, graph, rule=rule, steps=steps)
            assert theirs.evaluations == nfe
            assert by_nfe[nfe] == pytest.approx(abs(float(theirs.residual)), rel=1e-6, abs=1e-14)


def test_the_generic_model_needs_eight_points():
    model, graphs = completeness.generic()
    cells = {dtype: completeness.gathered(model, graphs, None, dtype) for dtype in DTYPES}
    double = convergence.summary(cells["float64"], "float64")
    assert double["points"] == 8
    mean = convergence.means(cells["float64"])["gauss-legendre"]
    assert mean["7"] > 1e3 * double["precision"] > 1e3 * mean["8"]
    orders = [float(double[f"order_{rule}"]) for rule in convergence.RULES]
    np.testing.assert_allclose(orders, (1, 2, 4), atol=0.15)
    assert convergence.summary(cells["float32"], "float32")["points"] <= 8


@pytest.mark.parametrize("seed", range(5))
def test_rank_correlation_is_scipys(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 6, 30).astype(float), rng.normal(size=30)
    assert why.spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    np.testing.assert_array_equal(why.ranks(a), stats.rankdata(a))


def test_nitro_groups_are_found_and_nothing_else():
    """Nitromethane, an oxime-like N–O with one oxygen, and a nitrate ester's bridging oxygen that does not end."""
    bonds = [(0, 1), (1, 2), (1, 3), (4, 5), (5, 6), (6, 7)]
    edges = torch.tensor([*bonds, *[(b, a) for a, b in bonds]]).T
    number = torch.tensor([6, 7, 8, 8, 6, 7, 8, 6])
    nitrogens, oxygens = claims.nitro(Data(atomic_number=number, edge_index=edges))
    assert nitrogens.nonzero().flatten().tolist() == [1]
    assert oxygens.nonzero().flatten().tolist() == [2, 3]


def test_a_house_is_five_nodes_and_its_surroundings_hold_it():
    from apexgnn.data import load
    from apexgnn.experiments.subjects import cut

    graphs, index = cut(load("ba-shapes"), [699])
    inside = structures.house_of(graphs[0], index[0])
    assert int(inside.sum()) == 5
    assert bool(graphs[0].motif[inside].all())
    nodes, structure = structures.surroundings(graphs[0], index[0])
    assert set(inside.nonzero().flatten().tolist()) <= set(nodes.tolist())
    assert 5 < len(nodes) <= 5 + 18
    assert len(structure.places) == len(structure.letters) == len(nodes)


def test_house_values_by_hand():
    graph = Data(
        x=torch.ones(4, 1),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        edge_gt=torch.tensor([True, True, False, False]),
    )
    found = claims.house_values(graph, torch.tensor([1.0, 2.0, 1.0, -4.0]), 0)
    assert list(found.values()) == [0.75, 0.5, 0.25]


def test_csv_comes_back(tmp_path):
    tables.write_csv(tmp_path / "a.csv", ["a", "b"], [{"a": 'x, "y"', "b": 0.1}, {"a": "ü", "b": 2}])
    rows = tables.read_csv(tmp_path / "a.csv")
    assert rows == [{"a": 'x, "y"', "b": "0.1"}, {"a": "ü", "b": "2"}]
    with (tmp_path / "a.csv").open(newline="") as file:
        assert next(iter(csv.reader(file))) == ["a", "b"]
