"""SubgraphX: the Shapley value against enumeration over all orders, and the search against all subgraphs."""

from __future__ import annotations

import itertools
from functools import cache, partial

import pytest
import torch
from torch_geometric.data import Data

from apexgnn import peers
from apexgnn.explain.question import ask
from apexgnn.nn import GIN, PolyGIN
from apexgnn.peers.case import Case
from apexgnn.peers.presence import SharedPresence
from apexgnn.peers.subgraphx import SubgraphX, _Search, coalitions
from apexgnn.testing import random_graph

GENERATOR = torch.Generator().manual_seed(0)


def setting(nodes=7, seed=0):
    torch.manual_seed(seed)
    model = GIN(3, 2, hidden_channels=6, num_layers=2).double().eval()
    data = random_graph(nodes, features=3, generator=torch.Generator().manual_seed(seed))
    data.x = data.x.double()
    return model, data


def shapley_by_orders(model, data, subgraph, others, label=0):
    """The mean marginal contribution of `subgraph`, one player, over all orders of all players."""

    @cache
    def value(present):
        mask = torch.ones(len(data.x), 1).double()
        mask[[v for v in (*subgraph, *others) if v not in present]] = 0
        with torch.no_grad():
            return float(model(data.x * mask, data.edge_index).softmax(-1)[0, label])

    gains = []
    for order in itertools.permutations(["it", *others]):
        before = order[: order.index("it")]
        gains.append(value(frozenset({*before, *subgraph})) - value(frozenset(before)))
    return sum(gains) / len(gains)


def search(model, data, **options):
    case = Case(ask(model, data), torch.tensor([0]))
    return _Search(SubgraphX(**options), case, 0)


def test_shapley_by_enumeration_is_exact():
    model, data = setting(7)
    subgraph, others = [1, 2], [0, 3, 4, 5, 6]
    tree = search(model, data, shapley_samples=100, hops=7)
    tree._add([frozenset(subgraph)])
    expected = shapley_by_orders(model, data, subgraph, others)
    assert tree.branches[frozenset(subgraph)].p == pytest.approx(expected, abs=1e-12)


def test_sampled_shapley_approaches_it():
    model, data = setting(8)
    subgraph, others = [2, 3], [0, 1, 4, 5, 6, 7]
    torch.manual_seed(0)
    tree = search(model, data, shapley_samples=63, hops=8)  # one fewer than there are coalitions: sampled
    values = []
    for _ in range(30):
        tree.branches.pop(frozenset(subgraph), None)
        tree._add([frozenset(subgraph)])
        values.append(tree.branches[frozenset(subgraph)].p)
    values = torch.tensor(values)
    error = 4 * float(values.std()) / 30**0.5
    assert float(values.mean()) == pytest.approx(shapley_by_orders(model, data, subgraph, others), abs=error)
    assert error < 0.05


def test_nodes_further_than_hops_stay_on():
    model, data = setting(6)
    chain = torch.arange(6)
    forth = torch.stack([chain[:-1], chain[1:]])
    data.edge_index = torch.cat([forth, forth.flip(0)], 1)
    tree = search(model, data, hops=1)
    tree._add([frozenset([0, 1])])
    expected = shapley_by_orders(model, data, [0, 1], [2])
    assert tree.branches[frozenset([0, 1])].p == pytest.approx(expected, abs=1e-12)


def test_coalition_weights_are_a_distribution():
    for others in range(6):
        joined, weight = coalitions(others, 64)
        assert joined.shape == (2**others, others)
        assert float(weight.sum()) == pytest.approx(1)
    joined, weight = coalitions(9, 64)
    assert joined.shape == (64, 9)
    sizes = torch.cat([coalitions(9, 400)[0].sum(1) for _ in range(20)]).bincount(minlength=10) / 8000
    assert (sizes - 0.1).abs().max() < 0.02  # every number of predecessors is as likely


def test_the_search_finds_the_best_connected_subgraph():
    """Enough rollouts visit every connected subgraph that can be reached; the best of them must win."""
    model, data = setting(6, seed=4)
    options = {"rollouts": 400, "min_atoms": 3, "shapley_samples": 200, "hops": 6}
    result = peers.get("subgraphx", max_nodes=3, **options).explain(model, data, target=0)
    adjacent = {frozenset(e) for e in data.edge_index.t().tolist()}

    def connected(nodes):
        reached, front = set(), {nodes[0]}
        while front:
            reached |= front
            front = {
                v for v in nodes if v not in reached and any(frozenset((u, v)) in adjacent for u in front)
            }
        return len(reached) == len(nodes)

    tree = search(model, data, **options)
    candidates = [s for s in itertools.combinations(range(6), 3) if connected(s)]
    tree._add([frozenset(s) for s in candidates if frozenset(s) not in tree.branches])
    best = max(candidates, key=lambda s: tree.branches[frozenset(s)].p)
    assert set(result.nodes.nonzero().flatten().tolist()) == set(best)
    assert result.nodes[list(best)].unique().numel() == 1


def test_scores_over_all_sizes():
    model, data = setting(6)
    result = peers.get("subgraphx", rollouts=5, min_atoms=2, shapley_samples=20).explain(model, data)
    assert float(result.nodes.max()) <= 1 + 1e-12
    assert float(result.nodes.min()) >= 1 / 6 - 1e-12  # at size N everything stays
    assert result.nodes.unique().numel() > 2  # a ranking, not a set
    assert result.evaluations > 0


@pytest.mark.parametrize("network", [GIN, PolyGIN, partial(PolyGIN, residual=True)])
@pytest.mark.parametrize("task", ["graph", "node"])
def test_shared_presence_is_only_faster(network, task, monkeypatch):
    torch.manual_seed(0)
    model = network(3, 2, hidden_channels=5, task=task).double().eval()
    edge_index = torch.cat(
        [random_graph(7, features=3, generator=GENERATOR).edge_index, torch.tensor([[2], [2]])], 1
    )
    weight = torch.rand(edge_index.size(1)).double()
    data = Data(x=torch.randn(7, 3).double(), edge_index=edge_index, edge_weight=weight)
    case = Case(ask(model, data, index=3 if task == "node" else None), torch.tensor([0]))
    shared = SharedPresence.of(case)
    present = torch.rand(300, 7) < 0.6
    for limit in (10**6, 5):  # remembering everything, and forgetting at every turn
        monkeypatch.setattr("apexgnn.peers.presence.REMEMBERED", limit)
        for part in present.split(100):
            assert torch.allclose(shared.logits(part), case.copies(data.x * part.unsqueeze(-1)), atol=1e-12)


def test_balls_too_large_to_be_named_are_copied():
    model, _ = setting()
    star = torch.stack([torch.zeros(70, dtype=torch.long), torch.arange(1, 71)])
    data = Data(x=torch.randn(71, 3).double(), edge_index=torch.cat([star, star.flip(0)], 1))
    assert SharedPresence.of(Case(ask(model, data), torch.tensor([0]))) is None
    tree = search(model, data, shapley_samples=2)
    assert len(tree.branches) == 1


def test_pieces_without_edges_between_them():
    model, _ = setting()
    data = Data(x=torch.randn(6, 3).double(), edge_index=torch.tensor([[0, 1, 3, 4], [1, 0, 4, 3]]))
    result = peers.get("subgraphx", rollouts=3, min_atoms=1, shapley_samples=8).explain(model, data)
    assert torch.isfinite(result.nodes).all()
