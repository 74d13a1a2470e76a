"""FlowX against brute force on small graphs: the flows, the removals, the marginals, their sum."""

from __future__ import annotations

import copy
import itertools
from functools import partial

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN, SAGEConv

from apexgnn import MemoryBudgetError, peers
from apexgnn.explain.question import ask
from apexgnn.nn import GIN, PolyGIN
from apexgnn.peers.case import Case
from apexgnn.peers.flows import count_flows, list_flows, looped
from apexgnn.peers.flowx import by_step, marginals
from apexgnn.peers.importance import Goal, learned_weights
from apexgnn.peers.layers import Twin
from apexgnn.peers.removal import MaskedLayers, answering, copied_states, shared_rows
from apexgnn.testing import random_graph

NETWORKS = [GIN, PolyGIN, partial(PolyGIN, residual=True)]
SQUARE = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])


def without_biases(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.bias.zero_()
    return model


def case_of(model, data, index=None, target=0):
    return Case(ask(copy.deepcopy(model).eval(), data, index=index), torch.tensor([target]))


@pytest.mark.parametrize("index", [None, 2])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_flows_are_all_walks(layers, index):
    edge_index = looped(SQUARE[:, :5], 4).edge_index
    found = {tuple(flow) for flow in list_flows(edge_index, layers=layers, num_nodes=4, index=index).tolist()}
    pairs = edge_index.t().tolist()
    expected = {
        walk
        for walk in itertools.product(range(len(pairs)), repeat=layers)
        if all(pairs[a][1] == pairs[b][0] for a, b in itertools.pairwise(walk))
        and (index is None or pairs[walk[-1]][1] == index)
    }
    assert found == expected
    assert count_flows(edge_index, layers=layers, num_nodes=4, index=index) == len(expected)


def test_too_many_flows_are_refused_before_they_are_listed():
    with pytest.raises(MemoryBudgetError, match="flows of length 60"):
        list_flows(looped(SQUARE, 4).edge_index, layers=60, num_nodes=4)


def test_loops_replace_the_graphs_own():
    edges = looped(torch.tensor([[0, 1, 1], [0, 0, 0]]), 2)
    assert edges.edge_index.tolist() == [[1, 1, 0, 1], [0, 0, 0, 1]]
    assert edges.column.tolist() == [2, 0, 1]
    assert edges.proper.tolist() == [False, True, True]


def removed_by_hand(model, data, alive):
    """The model with pairs removed, in plain loops over layers, nodes and edges."""
    edges = looped(data.edge_index, len(data.x))
    h = data.x
    weight = torch.ones(data.num_edges).double() if data.edge_weight is None else data.edge_weight
    for layer, conv in enumerate(model.convs):
        a = torch.zeros_like(h)
        for v in range(len(h)):
            a[v] += (1 + model.eps) * h[v] * alive[layer, edges.edge_index.size(1) - len(h) + v]
        for column, (u, v) in enumerate(data.edge_index.t().tolist()):
            a[v] += weight[column] * h[u] * alive[layer, edges.column[column]]
        h = conv(a)
    return model.head(h.mean(0, keepdim=True)) if model.task == "graph" else model.head(h)


@pytest.mark.parametrize("task", ["graph", "node"])
def test_states_by_hand_by_copies_and_by_shared_rows(task):
    torch.manual_seed(0)
    model = GIN(3, 2, hidden_channels=4, num_layers=2, task=task, eps=0.3).double().eval()
    edge_index = torch.cat([SQUARE, torch.tensor([[1, 0], [1, 1]])], 1)  # with a self-loop and a double edge
    data = Data(x=torch.randn(4, 3).double(), edge_index=edge_index, edge_weight=torch.rand(10).double())
    case = case_of(model, data, index=2 if task == "node" else None)
    edges = looped(edge_index, 4)
    masked = MaskedLayers(case, edges)
    assert isinstance(masked.model, Twin)
    assert masked.layers == 2
    assert masked.removable.all()
    pairs = masked.removable.numel()
    removal = torch.stack([torch.randperm(pairs).view(2, -1) + 1 for _ in range(2)])
    copies = copied_states(masked, removal, steps=pairs, rows_per_call=40)
    shared = shared_rows(masked.model, case, edges, removal=removal, steps=pairs)
    assert torch.allclose(copies, shared, atol=1e-12)
    with torch.no_grad():
        for sample, step in ((0, 0), (0, 5), (1, 11), (1, pairs)):
            alive = (removal[sample] > step).double()
            by_hand = removed_by_hand(model, data, alive)[2 if task == "node" else 0]
            assert torch.allclose(copies[sample, step], by_hand, atol=1e-12)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("index", [None, 3])
def test_shared_rows_is_only_faster(network, index):
    torch.manual_seed(1)
    model = network(3, 2, hidden_channels=5, task="graph" if index is None else "node").double()
    data = random_graph(8, features=3, generator=torch.Generator().manual_seed(4))
    data.x = data.x.double()
    case = case_of(model, data, index=index)
    edges = looped(data.edge_index, 8)
    masked = MaskedLayers(case, edges)
    steps = 17  # chunks: several pairs go at once
    removal = torch.randint(1, steps + 1, (3, *masked.removable.shape))
    copies = copied_states(masked, removal, steps=steps, rows_per_call=100)
    assert torch.allclose(
        copies, shared_rows(masked.model, case, edges, removal=removal, steps=steps), atol=1e-12
    )


def test_marginals_by_brute_force():
    torch.manual_seed(0)
    model = without_biases(GIN(3, 2, hidden_channels=4, num_layers=2)).double().eval()
    data = Data(x=torch.randn(4, 3).double(), edge_index=SQUARE)
    case, edges = case_of(model, data), looped(SQUARE, 4)
    masked = MaskedLayers(case, edges)
    flows = list_flows(edges.edge_index, layers=2, num_nodes=4)
    pairs = masked.removable.numel()
    removal = torch.stack([torch.randperm(pairs).view(2, -1) + 1 for _ in range(3)])
    p = copied_states(masked, removal, steps=pairs, rows_per_call=400).softmax(-1)[..., 0]
    found = marginals(flows, removal, p)
    scores = torch.zeros(len(flows), dtype=torch.float64)
    for sample in range(3):
        alive = [True] * len(flows)
        for step in range(1, pairs + 1):
            layer, edge = (removal[sample] == step).nonzero()[0].tolist()
            dying = [f for f, flow in enumerate(flows.tolist()) if alive[f] and flow[layer] == edge]
            for f in dying:
                alive[f] = False
                scores[f] += (p[sample, step - 1] - p[sample, step]) / len(dying) / 3
    assert torch.allclose(found.share.mean(0), scores, atol=1e-14)
    by_pair = by_step(found, masked.removable.shape).sum(-1)
    for layer in range(2):
        for edge in range(edges.edge_index.size(1)):
            assert by_pair[layer, edge].item() == pytest.approx(
                float(scores[flows[:, layer] == edge].sum()), abs=1e-14
            )


def test_an_edge_scores_its_flows_as_often_as_they_use_it():
    torch.manual_seed(0)
    model = GIN(3, 2, hidden_channels=4, num_layers=3).double().eval()
    data = Data(x=torch.randn(4, 3).double(), edge_index=SQUARE)
    explainer = peers.get("flowx", samples=3)
    result = explainer.explain(model, data, target=0, seed=5)
    masked = MaskedLayers(case_of(model, data), looped(SQUARE, 4))
    torch.manual_seed(5)
    removal, steps = explainer._orders(masked.removable, node_task=False)
    assert steps == 36
    p = copied_states(masked, removal, steps=steps, rows_per_call=400).softmax(-1)[..., 0]
    flows = list_flows(masked.edges.edge_index, layers=3, num_nodes=4)
    expected = torch.zeros(12).double()
    for flow, score in zip(flows.tolist(), marginals(flows, removal, p).share.mean(0), strict=True):
        for edge in flow:
            expected[edge] += score
    assert torch.allclose(result.edges, expected[:8], atol=1e-12)
    ends = masked.edges.edge_index
    best = [max(expected[e] for e in range(12) if v in ends[:, e].tolist()) for v in range(4)]
    assert torch.allclose(result.nodes, torch.stack(best), atol=1e-12)


def test_node_tasks_remove_in_chunks():
    explainer, removable = peers.get("flowx", samples=2, chunks=7), torch.ones(2, 10, dtype=torch.bool)
    removal, steps = explainer._orders(removable, node_task=True)
    assert steps == 7
    for one in removal:
        assert set(one.flatten().bincount().tolist()[1:]) == {2, 3}  # 20 pairs in 7 steps
    alone, steps = explainer._orders(removable, node_task=False)
    assert steps == 20
    assert alone[0].flatten().sort().values.tolist() == list(range(1, 21))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("biases", [False, True])
def test_flow_scores_add_up_to_the_full_removal(network, biases):
    """Without biases all that is lost is lost by flows; with them the rest is told apart."""
    torch.manual_seed(0)
    model = network(3, 2, hidden_channels=5, num_layers=2).double().eval()
    model = model if biases else without_biases(model)
    data = Data(x=torch.randn(4, 3).double(), edge_index=SQUARE)
    case, edges = case_of(model, data), looped(SQUARE, 4)
    masked = MaskedLayers(case, edges)
    flows = list_flows(edges.edge_index, layers=2, num_nodes=4)
    pairs = masked.removable.numel()
    removal = torch.stack([torch.randperm(pairs).view(2, -1) + 1 for _ in range(4)])
    p = copied_states(masked, removal, steps=pairs, rows_per_call=400).softmax(-1)[..., 0]
    found = marginals(flows, removal, p)
    with torch.no_grad():
        everything = model(data.x, data.edge_index).softmax(-1)[0, 0]
        nothing = removed_by_hand_nothing(model, data).softmax(-1)[0, 0]
    lost = found.share.sum(1) + found.unclaimed
    assert torch.allclose(lost, (everything - nothing).expand(4), atol=1e-13)
    assert bool(found.unclaimed.abs().max() > 1e-6) == biases


def removed_by_hand_nothing(model, data):
    """What is left of a model when no layer receives anything: its biases."""
    h = torch.zeros_like(data.x)
    empty = torch.empty(2, 0, dtype=torch.long)
    for conv in model.convs:
        h = conv(torch.zeros_like(h), empty) if isinstance(model, PolyGIN) else conv(torch.zeros_like(h))
    return model.head(h.mean(0, keepdim=True))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("index", [None, 2])
def test_matrices_answer_as_messages_do(network, index, monkeypatch):
    torch.manual_seed(0)
    model = network(3, 2, hidden_channels=5, task="graph" if index is None else "node").double()
    edge_index = torch.cat([SQUARE, torch.tensor([[1, 0], [1, 1]])], 1)  # with a self-loop and a double edge
    data = Data(x=torch.randn(4, 3).double(), edge_index=edge_index, edge_weight=torch.rand(10).double())
    masked = MaskedLayers(case_of(model, data, index=index), looped(edge_index, 4))
    masks = torch.rand(masked.removable.shape).double().requires_grad_()
    answers = []
    for largest in (1024, 3):
        monkeypatch.setattr("apexgnn.peers.removal.LARGEST_MATRIX", largest)
        logits = answering(masked)(masks)
        answers.append((logits.detach(), *torch.autograd.grad(logits[0, 0].square(), masks)))
    for by_matrix, by_message in zip(*answers, strict=True):
        assert torch.allclose(by_matrix, by_message, atol=1e-12)


@pytest.mark.parametrize("variant", ["plus", "minus"])
def test_learned_weights_follow_the_objectives_written_out(variant):
    """The two objectives flow by flow, with PyTorch's own instance norm, for a few steps of Adam."""
    torch.manual_seed(0)
    model = GIN(3, 2, hidden_channels=16, num_layers=2).double().eval()
    data = Data(x=torch.randn(4, 3).double(), edge_index=SQUARE)
    case, edges = case_of(model, data), looped(SQUARE, 4)
    masked = MaskedLayers(case, edges)
    flows = list_flows(edges.edge_index, layers=2, num_nodes=4)
    steps = masked.removable.numel()
    removal = torch.stack([torch.randperm(steps).view(2, -1) + 1 for _ in range(3)])
    p = copied_states(masked, removal, steps=steps, rows_per_call=400).softmax(-1)[..., 1]
    assert p.std() > 1e-3  # a network that answers
    found = marginals(flows, removal, p)
    goal = Goal(variant == "plus", label=1, epochs=4, sparsity=0.6)
    torch.manual_seed(9)
    ours = learned_weights(by_step(found, masked.removable.shape), answering(masked), goal)

    torch.manual_seed(9)
    m = (0.1 * torch.rand(steps)).double().requires_grad_()
    gain, shift = torch.ones(1).double().requires_grad_(), torch.zeros(1).double().requires_grad_()
    optimizer = (
        torch.optim.Adam([m, gain, shift], lr=0.1, weight_decay=1e-5)
        if variant == "plus"
        else torch.optim.Adam([m], lr=0.3)
    )
    for _ in range(4):
        score = (m.sigmoid()[found.step] * found.share).mean(0)
        pairs = torch.zeros(2, edges.edge_index.size(1)).double()
        for flow, one in zip(flows.tolist(), score, strict=True):
            for layer, edge in enumerate(flow):
                pairs = pairs + one * torch.nn.functional.one_hot(
                    torch.tensor(layer * pairs.size(1) + edge), pairs.numel()
                ).view_as(pairs)
        if variant == "minus":
            for power in (8, 1):
                pairs = ((pairs - pairs.min()) / (pairs.max() - pairs.min())) ** power
            loss = -removed_by_hand(model, data, pairs).log_softmax(-1)[0, 1] + 5e-4 * m.sigmoid().sum()
        else:
            z = nn.functional.instance_norm(pairs.view(1, 1, -1), weight=gain, bias=shift).view_as(pairs)
            noise = torch.rand_like(z)
            removed = (z + noise.log() - (-noise).log1p()).sigmoid()
            q = z.sigmoid()
            target = torch.distributions.Bernoulli(torch.tensor(0.4).double())
            size = torch.distributions.kl_divergence(torch.distributions.Bernoulli(q), target).mean()
            loss = removed_by_hand(model, data, 1 - removed).log_softmax(-1)[0, 1] + size
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.allclose(ours, m.detach().sigmoid(), atol=1e-9)


@pytest.mark.parametrize("variant", ["plain", "plus", "minus"])
def test_every_variant_finds_the_only_edge_that_matters(variant):
    """Node 0 reads its neighbour through one edge; the others are far away."""
    model = GIN(1, 2, hidden_channels=1, num_layers=1, task="node").double().eval()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.weight.fill_(1.0)
                module.bias.zero_()
        model.head[3].weight[1] = -1.0
    data = Data(x=torch.tensor([[0.0], [2.0], [5.0]]).double(), edge_index=torch.tensor([[1, 2], [0, 1]]))
    result = peers.get("flowx", variant=variant, samples=4, epochs=30).explain(model, data, index=0, target=0)
    assert result.edges.argmax() == 0
    assert result.edges[1] <= 0
    assert result.nodes.argmin() == 2


def test_node_scores_outside_the_neighbourhood_rank_last():
    torch.manual_seed(0)
    model = GIN(3, 2, hidden_channels=4, num_layers=2, task="node")
    chain = torch.arange(7)
    forth = torch.stack([chain[:-1], chain[1:]])
    data = Data(x=torch.randn(7, 3), edge_index=torch.cat([forth, forth.flip(0)], 1))
    result = peers.get("flowx", samples=3).explain(model, data, index=0)
    assert (result.nodes[3:] == result.nodes.min()).all()
    assert (result.edges[[3, 4, 5]] == result.edges.min()).all()


class Sage(nn.Module):
    """One layer that adds a row's own term outside the messages."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(3, 2, aggr="sum")

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


def test_self_terms_of_gcn_are_messages_and_those_of_sage_stay():
    torch.manual_seed(0)
    data = Data(x=torch.randn(4, 3), edge_index=SQUARE)
    gcn = MaskedLayers(case_of(GCN(3, 4, num_layers=2, out_channels=2), data, index=0), looped(SQUARE, 4))
    assert gcn.removable.all()
    sage = MaskedLayers(case_of(Sage(), data, index=0), looped(SQUARE, 4))
    assert sage.removable[0].tolist() == [True] * 8 + [False] * 4
    result = peers.get("flowx", samples=2).explain(Sage(), data, index=0)
    assert torch.isfinite(result.nodes).all()
    lonely = Data(x=data.x, edge_index=torch.empty(2, 0, dtype=torch.long))  # nothing can be removed
    assert peers.get("flowx", samples=2).explain(Sage(), lonely, index=0).nodes.eq(0).all()


def test_self_loops_of_the_graph_in_any_order():
    """GCN puts loops of its own in the place of the graph's: same messages, in another order than the columns."""
    torch.manual_seed(0)
    x, model = torch.randn(4, 3), GCN(3, 4, num_layers=2, out_channels=2)
    loops = torch.arange(4).repeat(2, 1).flip(1)
    mixed = torch.cat([loops[:, :3], SQUARE, loops[:, 3:]], 1)
    removal, states = torch.randperm(24).view(1, 2, 12) + 1, []
    for edge_index in (SQUARE, mixed):
        masked = MaskedLayers(
            case_of(model, Data(x=x, edge_index=edge_index), index=0), looped(edge_index, 4)
        )
        assert masked.removable.all()
        states.append(copied_states(masked, removal, steps=24, rows_per_call=100))
    assert torch.allclose(*states, atol=1e-6)
