"""Each peer against something independent: PyTorch Geometric or Captum run directly, hands, or brute force."""

from __future__ import annotations

import copy
import warnings
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import CaptumExplainer, Explainer
from torch_geometric.explain import GNNExplainer as PyGGNNExplainer
from torch_geometric.explain import PGExplainer as PyGPGExplainer
from torch_geometric.nn import GCN, GINConv, global_mean_pool

from apexgnn import BaselineError, InputError, peers
from apexgnn.nn import GIN, PolyGIN
from apexgnn.testing import random_graph

CLASSES = {"mode": "multiclass_classification", "return_type": "raw"}


class PyGGIN(nn.Module):
    """A GIN of PyTorch Geometric's own layers."""

    def __init__(self, task: str) -> None:
        super().__init__()
        self.task = task
        widths = [(3, 8), (8, 8)]
        self.convs = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b)), train_eps=True)
            for a, b in widths
        )
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.head(global_mean_pool(x, batch) if self.task == "graph" else x)


def graph(nodes: int = 6, seed: int = 0) -> Data:
    return random_graph(nodes, features=3, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("task", ["graph", "node"])
def test_gnnexplainer_is_pygs(task):
    torch.manual_seed(0)
    model, data = PyGGIN(task).eval(), graph()
    index = 3 if task == "node" else None
    ours = peers.get("gnnexplainer", epochs=20, edge_size=0.01).explain(model, data, index=index, seed=5)
    theirs = Explainer(
        copy.deepcopy(model),
        algorithm=PyGGNNExplainer(epochs=20, edge_size=0.01),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"task_level": task, **CLASSES},
    )
    torch.manual_seed(5)
    extra = {"batch": torch.zeros(6, dtype=torch.long)} if task == "graph" else {}
    assert torch.equal(ours.edges, theirs(data.x, data.edge_index, index=index, **extra).edge_mask)
    assert all(conv.explain is None and conv._edge_mask is None for conv in model.convs)


@pytest.mark.parametrize("task", ["graph", "node"])
def test_pgexplainer_is_pygs(task):
    torch.manual_seed(0)
    model = PyGGIN(task).eval().requires_grad_(False)
    graphs = [graph(n, n) for n in (5, 6)]
    index = [1, 2] if task == "node" else None
    ours = peers.get("pgexplainer", epochs=4, lr=0.01).fit(model, graphs, index=index, seed=5)
    node = 4 if task == "node" else None
    mine = ours.explain(model, graphs[1], index=node)

    torch.manual_seed(5)
    theirs = Explainer(
        copy.deepcopy(model),
        algorithm=PyGPGExplainer(epochs=4, lr=0.01),
        explanation_type="phenomenon",
        edge_mask_type="object",
        model_config={"task_level": task, **CLASSES},
    )
    for epoch in range(4):
        for position, data in enumerate(graphs):
            extra = {"batch": torch.zeros(data.num_nodes, dtype=torch.long)} if task == "graph" else {}
            target = model(data.x, data.edge_index, **extra).argmax(1)
            which = None if index is None else index[position]
            with warnings.catch_warnings():  # its float(loss) warns once per process
                warnings.simplefilter("ignore", UserWarning)
                theirs.algorithm.train(
                    epoch, theirs.model, data.x, data.edge_index, target=target, index=which, **extra
                )
    data = graphs[1]
    extra = {"batch": torch.zeros(6, dtype=torch.long)} if task == "graph" else {}
    target = model(data.x, data.edge_index, **extra).argmax(1)
    explanation = theirs(data.x, data.edge_index, target=target, index=node, **extra)
    assert torch.allclose(mine.edges, explanation.edge_mask, atol=1e-7)


def test_pgexplainers_coefficients_stay_its_own():
    before = dict(PyGPGExplainer.coeffs)
    model, data = GIN(3, 2, hidden_channels=4), graph()
    peers.get("pgexplainer", epochs=1, edge_size=123.0).fit(model, [data])
    assert PyGPGExplainer.coeffs == before


def test_pgexplainer_must_learn_first():
    with pytest.raises(InputError, match="fit"):
        peers.get("pgexplainer").explain(GIN(3, 2, hidden_channels=4), graph())


@pytest.mark.parametrize("network", [GIN, PolyGIN, partial(PolyGIN, residual=True)])
def test_the_twin_masks_as_edge_weights_do(network):
    """GNNExplainer's mask on our own layers is the model's own edge_weight."""
    from apexgnn.peers.layers import message_passing

    torch.manual_seed(0)
    model = network(3, 2, hidden_channels=5).double().eval()
    data = graph()
    x, weight = data.x.double(), torch.rand(data.num_edges).double()
    twin = message_passing(copy.deepcopy(model))
    assert torch.allclose(twin(x, data.edge_index), model(x, data.edge_index), atol=1e-12)
    for conv in twin.convs:
        conv.explain, conv._edge_mask, conv._apply_sigmoid = True, weight, False
    assert torch.allclose(twin(x, data.edge_index), model(x, data.edge_index, edge_weight=weight), atol=1e-12)


@pytest.mark.parametrize("network", [GIN, PolyGIN])
@pytest.mark.parametrize("task", ["graph", "node"])
def test_integrated_gradients_is_captums(network, task):
    torch.manual_seed(0)
    model, data = network(3, 2, hidden_channels=8, task=task), graph()
    index = 2 if task == "node" else None
    ours = peers.get("ig").explain(model, data, index=index).features
    captum = peers.get("captum_ig").explain(model, data, index=index).features
    assert torch.allclose(ours, captum, atol=1e-6)
    theirs = Explainer(
        copy.deepcopy(model).eval(),
        algorithm=CaptumExplainer("IntegratedGradients"),
        explanation_type="model",
        node_mask_type="attributes",
        model_config={"task_level": task, **CLASSES},
    )
    extra = {"batch": torch.zeros(6, dtype=torch.long)} if task == "graph" else {}
    assert torch.allclose(captum, theirs(data.x, data.edge_index, index=index, **extra).node_mask, atol=1e-6)


def test_eight_points_of_captum_are_enough_on_polygin():
    torch.manual_seed(0)
    model, data = PolyGIN(3, 2, hidden_channels=8).double(), graph()
    data.x = data.x.double()
    exact = peers.get("apex").explain(model, data).features
    captum = peers.get("captum_ig", steps=8).explain(model, data).features
    assert torch.allclose(exact, captum, atol=1e-7 * float(exact.abs().max()))


class OneLayer(nn.Module):
    """One GIN layer that only sums, mean pooling, logits (w·h, 0): Grad-CAM fits on a napkin."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GINConv(nn.Identity())
        self.weight = torch.tensor([2.0, -1.0])

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out = global_mean_pool(self.conv(x, edge_index), batch) @ self.weight
        return torch.stack([out, 0 * out], dim=1)


def test_gradcam_by_hand():
    # h = x + neighbours over 0↔2: h₀ = h₂ = (3, 2), h₁ = (2, 3), h₃ = (5, 1); logit 0 is (2, −1)·mean h,
    # so α = (2, −1)/4 and α·h = (1, ¼, 1, 9/4), which scales to (¾/2, 0, ¾/2, 1) = (3/8, 0, 3/8, 1).
    x = torch.tensor([[3.0, 1.0], [2.0, 3.0], [0.0, 1.0], [5.0, 1.0]])
    data = Data(x=x, edge_index=torch.tensor([[0, 2], [2, 0]]))
    assert peers.get("gradcam").explain(OneLayer(), data, target=0).nodes.tolist() == [0.375, 0.0, 0.375, 1.0]
    # Of logit 1, which is 0, there is nothing to see.
    assert peers.get("gradcam").explain(OneLayer(), data, target=1).nodes.tolist() == [0.0] * 4


@pytest.mark.parametrize("network", [GIN, PolyGIN])
def test_gradcam_from_its_formula(network):
    torch.manual_seed(3)
    model, data = network(3, 2, hidden_channels=6).double(), graph(7, 3)
    data.x = data.x.double()
    for target in (0, 1):
        h = data.x
        if network is GIN:
            for conv in model.convs:
                h = conv(h + torch.zeros_like(h).index_add(0, data.edge_index[1], h[data.edge_index[0]]))
        else:
            for conv in model.convs:
                h = conv(h, data.edge_index)
        h = h.detach().requires_grad_()
        logit = model.eval().head(h.mean(0, keepdim=True))[0, target]
        alpha = torch.autograd.grad(logit, h)[0].mean(0)
        nodes = (h.detach() @ alpha).relu()
        span = nodes.max() - nodes.min()
        expected = (nodes - nodes.min()) / span if span > 0 else torch.zeros_like(nodes)
        result = peers.get("gradcam").explain(model, data, target=target)
        assert torch.allclose(result.nodes, expected, atol=1e-10)


def test_gradcam_scales_within_each_graph():
    torch.manual_seed(0)
    model, graphs = GIN(3, 2, hidden_channels=6), [graph(5, 1), graph(7, 2)]
    whole = peers.get("gradcam").explain(model, Batch.from_data_list(graphs), target=1)
    alone = torch.cat([peers.get("gradcam").explain(model, g, target=1).nodes for g in graphs])
    assert torch.allclose(whole.nodes, alone, atol=1e-6)


@pytest.mark.parametrize("task", ["graph", "node"])
def test_input_x_gradient_is_exact_without_biases(task):
    """f(τx) = τ f(x): the gradient is constant along the ray, so one of them is the path integral."""
    torch.manual_seed(0)
    model, data = GIN(3, 2, hidden_channels=8, task=task).double(), graph()
    data.x = data.x.double()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.bias.zero_()
    index = 1 if task == "node" else None
    result = peers.get("input_x_gradient").explain(model, data, index=index, target=0)
    assert result.residual.abs() < 1e-14
    steps = (torch.arange(400, dtype=torch.float64) + 0.5) / 400
    integral = torch.zeros_like(data.x)
    for tau in steps:
        x = (tau * data.x).requires_grad_()
        logit = model.eval()(x, data.edge_index)[index or 0, 0]
        integral += torch.autograd.grad(logit, x)[0] / 400
    assert torch.allclose(result.features, data.x * integral, atol=1e-13)


@pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients:UserWarning")
@pytest.mark.parametrize("network", [GIN, PolyGIN])
@pytest.mark.parametrize("name, theirs", [("saliency", "Saliency"), ("input_x_gradient", "InputXGradient")])
def test_gradients_are_captums(network, name, theirs):
    torch.manual_seed(0)
    model, data = network(3, 2, hidden_channels=8), graph()
    explainer = Explainer(
        copy.deepcopy(model).eval(),
        algorithm=CaptumExplainer(theirs),
        explanation_type="model",
        node_mask_type="attributes",
        model_config={"task_level": "graph", **CLASSES},
    )
    captums = explainer(data.x, data.edge_index, batch=torch.zeros(6, dtype=torch.long)).node_mask
    assert torch.allclose(peers.get(name).explain(model, data).features, captums, atol=1e-7)


def test_input_x_gradient_is_not_exact_with_biases():
    torch.manual_seed(0)
    model, data = GIN(3, 2, hidden_channels=8).double(), graph()
    data.x = data.x.double()
    assert peers.get("input_x_gradient").explain(model, data).residual.abs() > 1e-5


def test_occlusion_one_node_at_a_time():
    torch.manual_seed(0)
    model, data = GIN(3, 2, hidden_channels=6).eval(), graph()
    result = peers.get("occlusion", baseline=0.5).explain(model, data, target=1)
    with torch.no_grad():
        whole = model(data.x, data.edge_index)[0, 1]
        for v in range(6):
            x = data.x.clone()
            x[v] = 0.5
            assert result.nodes[v].item() == pytest.approx(
                float(whole - model(x, data.edge_index)[0, 1]), abs=1e-6
            )


def test_random_is_uniform_and_differs_between_seeds():
    model, data = GIN(3, 2, hidden_channels=4), graph(50)
    first, second = (peers.get("random").explain(model, data, seed=seed).nodes for seed in (0, 1))
    assert not torch.equal(first, second)
    assert 0.35 < float(first.mean()) < 0.65


def test_names_and_options_are_checked():
    with pytest.raises(InputError, match="'gradcam'"):
        peers.get("grad-cam")
    with pytest.raises(InputError, match="one of baseline, conversion, method, steps"):
        peers.get("captum_ig", n_steps=8)
    for name, option in (("flowx", "samples"), ("gnnexplainer", "epochs"), ("subgraphx", "rollouts")):
        with pytest.raises(InputError, match=f"{name} option {option}: got 0; expected at least 1"):
            peers.get(name, **{option: 0})
    with pytest.raises(InputError, match="one of 'endpoints'"):
        peers.get("flowx", conversion="best")
    with pytest.raises(InputError, match="'riemann_left'"):
        peers.get("captum_ig", method="simpson").explain(GIN(3, 2, hidden_channels=4), graph())


def test_one_baseline_at_a_time():
    with pytest.raises(BaselineError, match="10 baselines; expected one for ig"):
        peers.get("ig", baseline="permutation").explain(GIN(3, 2, hidden_channels=4), graph())


class Noisy(nn.Module):
    """A model that throws dice in evaluation mode too."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GINConv(nn.Linear(3, 8))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        h = nn.functional.dropout(self.conv(x, edge_index), 0.5, training=True)
        return global_mean_pool(h, batch)


@pytest.mark.parametrize("name", ["gradcam", "pgexplainer", "saliency"])
def test_dice_of_the_model_are_thrown_under_the_seed(name):
    torch.manual_seed(0)
    model, data = Noisy(), graph()
    explainer = peers.get(name).fit(model, [data])
    state = torch.get_rng_state()
    first = explainer.explain(model, data, target=0).nodes
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert torch.equal(explainer.explain(model, data, target=0).nodes, first)


def test_masking_needs_message_passing():
    with pytest.raises(InputError, match="without message-passing layers"):
        peers.get("gnnexplainer").explain(Flat(), graph())


class Flat(nn.Module):
    """A model that passes no messages."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return global_mean_pool(x, batch)[:, :2]


def test_one_column_has_no_classes():
    with pytest.raises(InputError, match="one column per class"):
        peers.get("gnnexplainer").explain(GCN(3, 4, num_layers=2, out_channels=1), graph(), index=0)
