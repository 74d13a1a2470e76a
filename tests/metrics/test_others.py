"""Ground truth, robust fidelity, stability, completeness and intervals against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap as percentile_bootstrap
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data

from apexgnn.attribution import Attribution
from apexgnn.conversion import edge_scores, node_scores
from apexgnn.errors import InputError
from apexgnn.metrics import (
    Protocol,
    bootstrap,
    completeness,
    fidelity,
    ground_truth,
    robust_fidelity,
    stability,
)
from apexgnn.nn import GIN


def share(
    nodes: torch.Tensor, edges: torch.Tensor | None = None, change: float = 0.0, target: int = 0
) -> Attribution:
    one = torch.ones(1, dtype=torch.float64)
    return Attribution(
        None, nodes, target * one.long(), change * one, 0 * one, 0 * one, 1, False, None, edges=edges
    )


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=20))
def test_auc_is_sklearns(pairs):
    scores = torch.tensor([float(s) for s, _ in pairs])
    truth = torch.tensor([t for _, t in pairs])
    result = ground_truth([scores], [truth])
    if truth.all() or not truth.any():
        assert result.auc.isnan().item()
        assert "no AUC" in result.notes[0]
    else:
        assert result.auc.item() == pytest.approx(roc_auc_score(truth.numpy(), scores.numpy()))


def test_precision_shares_ties_as_random_breaking_would():
    scores, truth = torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.tensor([1, 0, 1, 0])
    assert ground_truth([scores], [truth]).precision.item() == pytest.approx(2 / 3)
    assert ground_truth([scores], [truth], k=1).precision.item() == pytest.approx(2 / 3)


def test_oracle_is_perfect_and_dice_are_at_chance():
    generator = torch.Generator().manual_seed(0)
    truth = [torch.rand(24, generator=generator) < 0.3 for _ in range(300)]
    oracle = ground_truth([t.double() for t in truth], truth)
    assert oracle.auc.eq(1).all()
    assert oracle.precision.eq(1).all()
    dice = ground_truth([torch.rand(24, generator=generator) for _ in truth], truth)
    area, precision = dice.intervals()
    assert area.low <= 0.5 <= area.high
    share_of_true = float(torch.stack([t.double().mean() for t in truth]).mean())
    assert precision.low <= share_of_true <= precision.high


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=12))
def test_spearman_is_scipys(pairs):
    a, b = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    result = stability([[torch.tensor(a)], [torch.tensor(b)]])
    if np.ptp(a) and np.ptp(b):
        assert result.spearman.item() == pytest.approx(spearmanr(a, b).statistic)
    else:
        assert result.spearman.item() == float(not np.ptp(a) and not np.ptp(b))


def test_jaccard_of_disjoint_and_equal_tops():
    up, down = torch.arange(10.0), -torch.arange(10.0)
    assert stability([[up], [down]], sparsity=0.7).jaccard.item() == 0.0
    assert stability([[up], [up], [down]], sparsity=0.7).jaccard.item() == pytest.approx(1 / 3)
    with pytest.raises(InputError, match="two or more"):
        stability([[up]])


def ring(n: int, seed: int) -> Data:
    generator = torch.Generator().manual_seed(seed)
    forth = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    x = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    return Data(x=x, edge_index=torch.cat([forth, forth.flip(0)], 1))


def test_robust_fidelity_at_one_and_zero_is_the_classical_form():
    torch.manual_seed(0)
    model = GIN(3, 2, hidden_channels=6).double().eval()
    graph = ring(6, 0)
    edges = torch.tensor([5.0, 4, 3, 2, 1, 0]).repeat(2)
    predicted = int(model(graph.x, graph.edge_index).argmax())
    scores = [share(torch.zeros(6), edges, target=predicted)]
    result = robust_fidelity(model, [graph], scores=scores, sparsity=0.5, alphas=(1.0, 0.0), samples=3)
    explained = edges >= 3
    with torch.no_grad():
        whole, without, alone = (
            model(graph.x, graph.edge_index[:, keep]).softmax(-1)[0]
            for keep in (torch.ones(12, dtype=torch.bool), ~explained, explained)
        )
    label = int(whole.argmax())
    assert result.label.item() == label
    assert result.plus.item() == pytest.approx(float(whole[label] - without[label]), abs=1e-12)
    assert result.minus.item() == pytest.approx(float(whole[label] - alone[label]), abs=1e-12)
    assert result.delta.item() == pytest.approx(result.plus.item() - result.minus.item())


def test_robust_fidelity_is_the_mean_over_edge_sets():
    """Three explained undirected edges: eight subsets, enumerated."""
    torch.manual_seed(3)
    model = GIN(3, 2, hidden_channels=6).double().eval()
    graph = ring(6, 1)
    edges = torch.tensor([5.0, 4, 3, 2, 1, 0]).repeat(2)
    alpha = 0.4
    predicted = int(model(graph.x, graph.edge_index).argmax())
    scores = [share(torch.zeros(6), edges, target=predicted)]
    result = robust_fidelity(model, [graph], scores=scores, sparsity=0.5, alphas=(alpha, 0.5), samples=4000)
    expected = 0.0
    with torch.no_grad():
        whole = model(graph.x, graph.edge_index).softmax(-1)[0]
        label = int(whole.argmax())
        for subset in range(8):
            gone = [bool(subset >> e & 1) for e in range(3)] + [False] * 3
            keep = ~torch.tensor(gone).repeat(2)
            chance = np.prod([alpha if g else 1 - alpha for g in gone[:3]])
            p = model(graph.x, graph.edge_index[:, keep]).softmax(-1)[0, label]
            expected += float(chance * (whole[label] - p))
    assert result.plus.item() == pytest.approx(expected, abs=5 * 0.5 / 4000**0.5)


def test_robust_fidelity_without_edges():
    graph = Data(x=torch.ones(2, 3), edge_index=torch.empty(2, 0, dtype=torch.long))
    model = GIN(3, 2, hidden_channels=4).eval()
    predicted = int(model(graph.x, graph.edge_index).argmax())
    assert (
        robust_fidelity(model, [graph], scores=[share(torch.zeros(2), target=predicted)]).delta.item() == 0.0
    )
    other = [share(torch.zeros(2), target=1 - predicted)]
    with pytest.raises(InputError, match=f"expected one of class {predicted}"):
        robust_fidelity(model, [graph], scores=other)
    with pytest.raises(InputError, match=f"expected one of class {predicted}"):
        fidelity(model, [graph], scores=other, protocol=Protocol(correct_only=False))


def test_completeness_sums_the_shares_itself():
    exact = share(torch.tensor([1.0, 2.0]), change=3.0)
    off = share(torch.tensor([1.0, 2.0]), change=4.0)
    still = share(torch.tensor([0.5]), change=0.0)
    result = completeness([exact, off, still])
    assert result.absolute.tolist() == [0.0, 1.0, 0.5]
    assert result.relative[:2].tolist() == [0.0, 0.25]
    assert result.relative[2].isnan()


def test_bootstrap_covers_the_mean_and_drops_missing_graphs():
    generator = torch.Generator().manual_seed(0)
    hits = 0
    for trial in range(100):
        sample = torch.rand(60, generator=generator)
        interval = bootstrap(sample, level=0.9, resamples=400, seed=trial)
        hits += int(interval.low <= 0.5 <= interval.high)
    assert 80 <= hits <= 98
    options = {"n_resamples": 20_000, "method": "percentile", "random_state": 0}
    theirs = percentile_bootstrap((sample.numpy(),), np.mean, **options)
    # 20,000 draws know an end to 0.02 standard errors; the ends at 90 % lie 0.3 away
    ours, error = bootstrap(sample, resamples=20_000), 0.1 * float(sample.std()) / 60**0.5
    assert float(ours.low) == pytest.approx(theirs.confidence_interval.low, abs=error)
    assert float(ours.high) == pytest.approx(theirs.confidence_interval.high, abs=error)
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [float("nan"), 0.0]])
    interval = bootstrap(table)
    assert interval.graphs == 2
    assert interval.mean.tolist() == [2.0, 3.0]


def test_intervals_of_fidelity_have_one_entry_per_sparsity():
    torch.manual_seed(0)
    graphs = [ring(5, s) for s in range(4)]
    protocol = Protocol(correct_only=False)
    scores = [g.x[:, 0] for g in graphs]
    result = fidelity(GIN(3, 2, hidden_channels=4).double(), graphs, scores=scores, protocol=protocol)
    plus, minus = result.intervals()
    assert plus.mean.shape == minus.low.shape == (9,)
    assert torch.allclose(plus.mean, result.mean_plus)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 7), st.integers(0, 1000))
def test_endpoints_in_order_of_the_best_edges(n, seed):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(n, (2, 8), generator=generator)
    scores = torch.randperm(8, generator=generator).double() + 1
    nodes = node_scores(scores, edge_index, num_nodes=n)
    visited = list(dict.fromkeys(edge_index[:, scores.argsort(descending=True)].t().flatten().tolist()))
    order = nodes.argsort(descending=True, stable=True).tolist()
    for k in range(1, len(visited) + 1):
        # the two ends of one edge tie, so compare only where the visit is complete
        if k == len(visited) or nodes[visited[k - 1]] != nodes[visited[k]]:
            assert set(order[:k]) == set(visited[:k])


def test_edges_from_nodes_and_back_by_mean_and_sum():
    edge_index = torch.tensor([[0, 1], [1, 2]])
    assert edge_scores(torch.tensor([1.0, 2.0, 4.0]), edge_index).tolist() == [1.5, 3.0]
    assert node_scores(torch.tensor([1.0, 3.0]), edge_index, num_nodes=3, conversion="mean").tolist() == [
        1,
        2,
        3,
    ]
    with pytest.raises(InputError, match="endpoints"):
        node_scores(torch.ones(2), edge_index, num_nodes=3, conversion="max")
