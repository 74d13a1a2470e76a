"""Distributions of baselines: the mean of exact attributions, complete against the mean baseline score."""

import pytest
import torch

import apexgnn
from apexgnn import BaselineError, Permutation
from explain.nets import batch, graph, poly_gin


def complete(result, owner):
    size = torch.zeros_like(result.score).index_add(0, owner, result.features.abs().sum(1))
    size = size + result.score.abs() + result.baseline_score.abs()
    return bool((result.residual.abs() <= 1e-12 * size).all())


@pytest.mark.parametrize("explain", [apexgnn.attribute, apexgnn.integrated_gradients])
def test_several_baselines_are_averaged(explain):
    model, data = poly_gin(), batch()
    starts = [None, 0.5, torch.linspace(-1, 1, 5)]
    together = explain(model, data, baseline=starts, target=1)
    alone = [explain(model, data, baseline=b, target=1) for b in starts]
    for name in ("features", "baseline_score"):
        mean = torch.stack([getattr(a, name) for a in alone]).mean(0)
        torch.testing.assert_close(getattr(together, name), mean, rtol=1e-12, atol=1e-14)
    assert together.evaluations == 3 * alone[0].evaluations
    assert together.exact == alone[0].exact
    assert complete(together, data.batch)


def test_mean_is_the_mean_row_of_each_graph():
    model, data = poly_gin(), batch()
    result = apexgnn.attribute(model, data, baseline="mean")
    for k, one in enumerate(data.to_data_list()):
        alone = apexgnn.attribute(model, one, baseline=one.x.mean(0))
        torch.testing.assert_close(result.features[data.batch == k], alone.features, rtol=1e-9, atol=1e-13)


def test_permutations_shuffle_whole_rows_inside_graphs():
    from apexgnn.explain.baselines import resolve_baselines

    data = batch()
    draws = resolve_baselines(Permutation(draws=40, seed=3), data.x, data.batch)
    first_rows = set()
    for start in draws:
        for k in range(4):
            own, shuffled = data.x[data.batch == k], start[data.batch == k]
            assert sorted(own.tolist()) == sorted(shuffled.tolist())
        first_rows.add(tuple(start[0].tolist()))
    assert len(first_rows) == 5  # every row of the first graph comes first at some time


def test_permutations_are_seeded_and_complete():
    model, data = poly_gin(), graph()
    first = apexgnn.attribute(model, data, baseline=Permutation(draws=5, seed=1))
    again = apexgnn.attribute(model, data, baseline=Permutation(draws=5, seed=1))
    other = apexgnn.attribute(model, data, baseline=Permutation(draws=5, seed=2))
    assert torch.equal(first.features, again.features)
    assert not torch.allclose(first.features, other.features)
    assert complete(first, torch.zeros(12, dtype=torch.long))
    assert first.evaluations == 40
    assert apexgnn.attribute(model, data, baseline="permutation").evaluations == 80


@pytest.mark.parametrize(
    "baseline, message", [([], "empty"), ("zero", "'mean', 'permutation'"), ([0, "x"], "str")]
)
def test_requests_that_mean_nothing(baseline, message):
    with pytest.raises(BaselineError, match=message):
        apexgnn.attribute(poly_gin(), graph(), baseline=baseline)
    with pytest.raises(BaselineError, match="draws"):
        Permutation(draws=0)


@pytest.mark.parametrize("kind", ["fused", "path"])
def test_the_mean_is_that_of_the_nodes_own_graph(kind):
    model, data = poly_gin(task="node"), batch()
    call = None if kind == "fused" else lambda m, d: m(d.x, d.edge_index)
    index = int(data.ptr[2]) + 1
    one = data.to_data_list()[2]
    together = apexgnn.attribute(model, data, index=index, baseline="mean", call=call)
    alone = apexgnn.attribute(model, one, index=1, baseline="mean", call=call)
    torch.testing.assert_close(together.baseline_score, alone.baseline_score, rtol=1e-10, atol=1e-13)
    torch.testing.assert_close(together.features[data.batch == 2], alone.features, rtol=1e-9, atol=1e-12)
