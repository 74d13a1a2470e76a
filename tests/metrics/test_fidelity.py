"""Fidelity against closed forms, brute force over all permutations, and its own degenerate cases."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from apexgnn.errors import InputError
from apexgnn.metrics import Protocol, fidelity
from apexgnn.nn import GIN, PolyGIN


class TwoWay(nn.Module):
    """Logits (Σ_v g(x_v), 0): p₀ = σ(Σ g), which a pencil can follow."""

    def __init__(self, square: bool = False) -> None:
        super().__init__()
        self.square = square

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        value = x[:, 0].square() if self.square else x[:, 0]
        total = x.new_zeros(int(batch.max()) + 1).index_add(0, batch, value)
        return torch.stack([total, torch.zeros_like(total)], dim=1)


class EdgeCount(nn.Module):
    """Logits (number of edges, 0)."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        ones = torch.ones(edge_index.size(1), dtype=x.dtype)
        total = x.new_zeros(int(batch.max()) + 1).index_add(0, batch[edge_index[0]], ones)
        return torch.stack([total, torch.zeros_like(total)], dim=1)


def line(*values: float) -> Data:
    n = len(values)
    edges = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    return Data(
        x=torch.tensor(values, dtype=torch.float64).unsqueeze(1), edge_index=edges, y=torch.tensor([0])
    )


def sigmoid(t: float) -> float:
    return 1 / (1 + math.exp(-t))


def test_baseline_masking_closed_form():
    graph = line(3.0, 1.0, 0.5, 0.25)
    protocol = Protocol(sparsities=(0.5, 0.75), masking="baseline", baseline=0.1)
    result = fidelity(TwoWay(), [graph], scores=[graph.x[:, 0]], protocol=protocol)
    p = sigmoid(4.75)
    expected_plus = [p - sigmoid(0.2 + 0.75), p - sigmoid(0.1 + 1.75)]
    expected_minus = [p - sigmoid(4.0 + 0.2), p - sigmoid(3.0 + 0.3)]
    assert result.plus[0].tolist() == pytest.approx(expected_plus, abs=1e-15)
    assert result.minus[0].tolist() == pytest.approx(expected_minus, abs=1e-15)
    assert result.selected.tolist() == [[2, 1]]
    assert float(result.probability) == pytest.approx(p)


def test_permuting_a_sum_over_all_nodes():
    # One masked node v takes the value of a uniformly drawn node: E p = (1/n) Σ_u σ(T − x_v + x_u).
    values = [2.0, -1.0, 0.5]
    graph = line(*values)
    protocol = Protocol(sparsities=(0.7,), permutations="all")
    result = fidelity(TwoWay(), [graph], scores=[torch.tensor([9.0, 1.0, 2.0])], protocol=protocol)
    total = sum(values)
    expected = sigmoid(total) - sum(sigmoid(total - 2.0 + u) for u in values) / 3
    assert result.plus.item() == pytest.approx(expected, abs=1e-15)


@settings(max_examples=15, deadline=None)
@given(n=st.integers(2, 5), seed=st.integers(0, 10_000))
def test_against_every_permutation_by_brute_force(n, seed):
    torch.manual_seed(seed)
    model = PolyGIN(3, 2, hidden_channels=5, num_layers=2).double().eval()
    edges = torch.tensor([(a, b) for a in range(n) for b in range(n) if a != b and torch.rand(()) < 0.6])
    graph = Data(x=torch.randn(n, 3).double(), edge_index=edges.reshape(-1, 2).t().long())
    scores = torch.randn(n)
    sparsities = (0.2, 0.5, 0.8)
    protocol = Protocol(sparsities=sparsities, permutations="all", correct_only=False)
    result = fidelity(model, [graph], scores=[scores], protocol=protocol)

    def probability(x: Tensor) -> float:
        with torch.no_grad():
            return float(model(x, graph.edge_index).softmax(-1)[0, label])

    label = int(model(graph.x, graph.edge_index).argmax())
    ranking = sorted(range(n), key=lambda v: -float(scores[v]))
    for column, s in enumerate(sparsities):
        best = ranking[: max(1, math.floor((1 - s) * n + 0.5 + 1e-9))]
        plus, minus = [], []
        for perm in itertools.permutations(range(n)):
            x_without = torch.stack([graph.x[perm[v] if v in best else v] for v in range(n)])
            x_alone = torch.stack([graph.x[v if v in best else perm[v]] for v in range(n)])
            plus.append(probability(x_without))
            minus.append(probability(x_alone))
        whole = probability(graph.x)
        assert result.plus[0, column].item() == pytest.approx(whole - sum(plus) / len(plus), abs=1e-12)
        assert result.minus[0, column].item() == pytest.approx(whole - sum(minus) / len(minus), abs=1e-12)


def test_random_permutations_approach_all_of_them():
    torch.manual_seed(0)
    model = GIN(3, 2, hidden_channels=6).eval()
    graph = Data(x=torch.randn(5, 3), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    scores = [torch.randn(5)]
    common = {"sparsities": (0.4,), "correct_only": False}
    exact = fidelity(model, [graph], scores=scores, protocol=Protocol(permutations="all", **common))
    drawn = fidelity(model, [graph], scores=scores, protocol=Protocol(permutations=5000, **common))
    spread = 5 / math.sqrt(5000)  # a probability lies in [0, 1]: five standard errors of the mean at most
    assert abs((exact.plus - drawn.plus).item()) < spread * 0.5
    assert abs((exact.minus - drawn.minus).item()) < spread * 0.5


def test_edge_masking():
    graph = line(1.0, 1.0, 1.0, 1.0)  # edges 0→1, 1→2, 2→3
    protocol = Protocol(sparsities=(0.5,), masking="edges")
    result = fidelity(EdgeCount(), [graph], scores=[torch.tensor([0.0, 3.0, 2.0, 1.0])], protocol=protocol)
    assert result.plus.item() == pytest.approx(sigmoid(3) - sigmoid(0))  # all edges touch node 1 or 2
    assert result.minus.item() == pytest.approx(sigmoid(3) - sigmoid(1))  # 1→2 alone is left


def test_constant_features_are_said_to_be_degenerate():
    torch.manual_seed(1)
    graph = Data(x=torch.ones(6, 2), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), y=torch.tensor([0]))
    model = GIN(2, 2, hidden_channels=4)
    protocol = Protocol(correct_only=False)
    result = fidelity(model, [graph], scores=[torch.randn(6)], protocol=protocol)
    assert result.plus.abs().max() < 1e-7
    assert result.minus.abs().max() < 1e-7
    assert "all graphs have equal features" in result.notes[0]
    baseline = Protocol(correct_only=False, masking="baseline")
    assert fidelity(model, [graph], scores=[torch.randn(6)], protocol=baseline).notes == ()


def test_only_correct_graphs_and_which_they_are():
    right, wrong = line(1.0, 2.0), line(-1.0, -2.0)
    wrong.y = torch.tensor([0])
    result = fidelity(TwoWay(), [wrong, right], scores=[torch.ones(2)] * 2)
    assert result.graphs.tolist() == [1]
    assert result.label.tolist() == [0]
    everything = fidelity(
        TwoWay(), [wrong, right], scores=[torch.ones(2)] * 2, protocol=Protocol(correct_only=False)
    )
    assert everything.label.tolist() == [1, 0]
    true = Protocol(correct_only=False, label="true")
    assert fidelity(TwoWay(), [wrong, right], scores=[torch.ones(2)] * 2, protocol=true).label.tolist() == [
        0,
        0,
    ]
    with pytest.raises(InputError, match="none of them classified correctly"):
        fidelity(TwoWay(), [wrong], scores=[torch.ones(2)])


def test_absolute_ranking_and_absolute_change():
    graph = line(-3.0, 1.0, 3.0)
    base = {"sparsities": (0.7,), "masking": "baseline", "correct_only": False, "output": "raw"}
    scores = [graph.x[:, 0] * torch.tensor([1.01, 1, 1])]
    signed = fidelity(TwoWay(), [graph], scores=scores, protocol=Protocol(**base))
    absolute = fidelity(TwoWay(), [graph], scores=scores, protocol=Protocol(ranking="absolute", **base))
    unsigned = fidelity(
        TwoWay(), [graph], scores=scores, protocol=Protocol(ranking="absolute", change="absolute", **base)
    )
    assert signed.plus.item() == 3.0
    assert absolute.plus.item() == -3.0
    assert unsigned.plus.item() == 3.0


def test_node_task_follows_the_indexed_node():
    torch.manual_seed(0)
    model = GIN(2, 3, hidden_channels=4, task="node").double().eval()
    graph = Data(x=torch.randn(6, 2).double(), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    protocol = Protocol(sparsities=(0.5,), masking="baseline", correct_only=False)
    scores = [torch.arange(6.0), torch.arange(6.0)]
    result = fidelity(model, [graph, graph], scores=scores, index=[2, 5], protocol=protocol)
    x = graph.x.clone()
    x[3:] = 0
    for row, node in enumerate((2, 5)):
        whole, masked = (model(each, graph.edge_index).softmax(-1)[node].detach() for each in (graph.x, x))
        label = int(whole.argmax())
        assert result.plus[row].item() == pytest.approx(float(whole[label] - masked[label]), abs=1e-12)


class Centred(nn.Module):
    """A node model that sees all rows that it is given."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x - x.mean(0)


def test_copies_do_not_see_each_other():
    x = torch.tensor([[3.0, 1.0], [0.0, 2.0], [5.0, 1.0]])
    graph = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 2]]))
    protocol = Protocol(sparsities=(0.7,), masking="baseline", correct_only=False, output="raw")
    scores = [torch.tensor([0.0, 0.0, 1.0])]
    result = fidelity(Centred(), [graph], scores=scores, index=[0], protocol=protocol)
    label = int((x - x.mean(0))[0].argmax())
    without, alone = x.clone(), torch.zeros_like(x)
    without[2], alone[2] = 0, x[2]
    for found, masked in ((result.plus, without), (result.minus, alone)):
        change = (x - x.mean(0))[0, label] - (masked - masked.mean(0))[0, label]
        assert found.item() == pytest.approx(float(change), abs=1e-6)


def test_same_permutations_for_every_explainer_and_a_model_left_alone():
    torch.manual_seed(0)
    model = GIN(2, 2, hidden_channels=4).train()
    graphs = [Data(x=torch.randn(5, 2), edge_index=torch.tensor([[0, 1], [1, 2]])) for _ in range(2)]
    scores = [torch.randn(5) for _ in graphs]
    protocol = Protocol(correct_only=False)
    state = torch.get_rng_state()
    first = fidelity(model, graphs, scores=scores, protocol=protocol)
    second = fidelity(model, graphs, scores=[s * 2 + 1 for s in scores], protocol=protocol)
    assert torch.equal(first.plus, second.plus)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert all(p.grad is None for p in model.parameters())


def test_characterization():
    graph = line(3.0, 1.0, 0.5, 0.25)
    protocol = Protocol(sparsities=(0.5,), masking="baseline")
    result = fidelity(TwoWay(), [graph], scores=[graph.x[:, 0]], protocol=protocol)
    plus, minus = result.mean_plus.item(), result.mean_minus.item()
    assert result.characterization().item() == pytest.approx(1 / (0.5 / plus + 0.5 / (1 - minus)))
    worthless = fidelity(TwoWay(), [line(1.0, -0.5)], scores=[torch.tensor([0.0, 1.0])], protocol=protocol)
    assert worthless.characterization().item() == 0.0


@pytest.mark.parametrize(
    "change, words",
    [
        ({"masking": "noise"}, "one of 'permutation', 'baseline', 'edges'"),
        ({"sparsities": (1.0,)}, "numbers in"),
        ({"permutations": 0}, "positive number"),
    ],
)
def test_protocol_refuses(change, words):
    with pytest.raises(InputError, match=words):
        Protocol(**change)


def test_bad_scores_are_refused():
    graph = line(1.0, 2.0)
    with pytest.raises(InputError, match="one score for each of 2 nodes"):
        fidelity(TwoWay(), [graph], scores=[torch.ones(3)])
    with pytest.raises(InputError, match="NaN or infinite"):
        fidelity(TwoWay(), [graph], scores=[torch.tensor([1.0, math.nan])])
    with pytest.raises(InputError, match="a batch of 2 graphs"):
        fidelity(TwoWay(), [Batch.from_data_list([graph, graph])], scores=[torch.ones(4)])
    with pytest.raises(InputError, match="one of each per graph"):
        fidelity(TwoWay(), [graph], scores=[])
