"""The ways to attribute a score that are measured against each other, each as a function to call.

All explain the same scores, one column for each graph of a batch, from the baseline zero, and return φ [N, F], so that
each can be checked before it is timed. What is not ours is given its fastest form: models whose parameters ask for no
gradients, no batch vector for a single graph, points of the path side by side in one pass.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.explain import CaptumExplainer, Explainer, GNNExplainer

from apexgnn.benchmark.molecules import Graphs
from apexgnn.errors import MissingDependencyError, NumericalError
from apexgnn.explain import attribute, integrated_gradients
from apexgnn.path.quadrature import Rule, quadrature
from apexgnn.replicas import copied_edges

Explain = Callable[[], Tensor]
Network = TypeVar("Network", bound=nn.Module)


class Foreign(nn.Module):
    """Somebody else's model that happens to hold a PolyGIN: `attribute` carries a PathTensor through its code."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """What the model inside returns."""
        logits: Tensor = self.inner(x, edge_index, batch)
        return logits


def frozen(model: Network) -> Network:
    """A copy whose parameters ask for no gradients: its backward pass costs less."""
    return copy.deepcopy(model).requires_grad_(False)


def gauss(points: int) -> Rule:
    """The Gauss–Legendre rule of so many points."""
    return quadrature("gauss-legendre", points)


def scores(model: nn.Module, graphs: Graphs, target: Tensor) -> Tensor:
    """The sum of the explained scores."""
    logits = model(graphs.x, graphs.edge_index, graphs.batch)
    total: Tensor = logits.gather(1, target.unsqueeze(1)).sum()
    return total


def forward(model: nn.Module, graphs: Graphs, target: Tensor) -> Tensor:
    """The scores alone."""
    with torch.no_grad():
        return scores(model, graphs, target)


def gradient(model: nn.Module, graphs: Graphs, target: Tensor) -> Tensor:
    """One ordinary gradient with respect to the node features."""
    x = graphs.x.detach().requires_grad_()
    return torch.autograd.grad(scores(model, graphs._replace(x=x), target), x)[0]


def in_turn(model: nn.Module, graphs: Graphs, target: Tensor, rule: Rule) -> Tensor:
    """Quadrature of the gradient, one point after the other."""
    total = torch.zeros_like(graphs.x)
    for tau, weight in zip(rule.nodes.tolist(), rule.weights.tolist(), strict=True):
        total.add_(gradient(model, graphs._replace(x=tau * graphs.x), target), alpha=weight)
    return graphs.x * total


def side_by_side(model: nn.Module, graphs: Graphs, target: Tensor, rule: Rule) -> Tensor:
    """Quadrature of the gradient, all points in one pass over as many copies of the graphs."""
    taus, weights = (torch.tensor(values).to(graphs.x) for values in (rule.nodes, rule.weights))
    points = copies(graphs, taus.view(-1, 1, 1) * graphs.x)
    gradients = gradient(model, points, target.repeat(len(taus))).view(len(taus), *graphs.x.shape)
    return graphs.x * torch.tensordot(weights, gradients, 1)


def copies(graphs: Graphs, x: Tensor) -> Graphs:
    """The graphs with features x[0], x[1], …, side by side."""
    count, nodes = x.shape[:2]
    owner = torch.zeros(nodes, dtype=torch.long) if graphs.batch is None else graphs.batch
    batch = (owner + graphs.number * torch.arange(count).unsqueeze(1)).flatten()
    edges = copied_edges(graphs.edge_index, copies=count, num_nodes=nodes)
    return Graphs(x.flatten(0, 1), edges, batch, graphs.number * count)


def captum(
    model: nn.Module, graphs: Graphs, target: Tensor, *, points: int, at_once: int | None = None
) -> Explain:
    """Captum's integrated gradients by its default rule, all points in one pass, or so many at once."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError as error:
        raise MissingDependencyError("Captum is not installed: pip install 'apexgnn[peers]'") from error

    def total(x: Tensor) -> Tensor:
        wanted = target.repeat(len(x)).unsqueeze(1)
        placed = copies(graphs, x)
        return model(placed.x, placed.edge_index, placed.batch).gather(1, wanted).view(len(x), -1).sum(dim=1)

    explainer = IntegratedGradients(total)

    def explain() -> Tensor:
        shares = explainer.attribute(graphs.x.unsqueeze(0), n_steps=points, internal_batch_size=at_once)
        return shares[0].to(graphs.x)

    return explain


def pyg_explainer(model: nn.Module, graphs: Graphs, target: Tensor, *, epochs: int | None = None) -> Explain:
    """PyTorch Geometric's CaptumExplainer with integrated gradients as it comes; or GNNExplainer's feature mask.

    The explained columns are given, so that it does not spend a pass on finding them.
    """
    algorithm = GNNExplainer(epochs=epochs) if epochs else CaptumExplainer("IntegratedGradients")
    explainer = Explainer(
        model,
        algorithm,
        explanation_type="phenomenon",
        node_mask_type="attributes",
        model_config={"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"},
    )
    batch = torch.zeros(len(graphs.x), dtype=torch.long) if graphs.batch is None else graphs.batch

    def explain() -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Captum tells that it takes one point at a time
            mask: Tensor = explainer(graphs.x, graphs.edge_index, target=target, batch=batch).node_mask
            return mask

    return explain


def ours(model: nn.Module, graphs: Graphs, target: Tensor) -> Tensor:
    """`apexgnn.attribute`, which takes what is fastest for the model."""
    shares = attribute(model, graphs.data, target=target).features
    assert shares is not None
    return shares


def quadrature_of_ours(model: nn.Module, graphs: Graphs, target: Tensor, points: int) -> Tensor:
    """`apexgnn.integrated_gradients` by Gauss–Legendre."""
    shares = integrated_gradients(model, graphs.data, steps=points, target=target).features
    assert shares is not None
    return shares


def error(found: Tensor, truth: Tensor) -> float:
    """‖found − truth‖ / ‖truth‖ in float64."""
    return float((found.double() - truth).norm() / truth.norm())


def check(found: Tensor, truth: Tensor, *, name: str, limit: float = 1e-4) -> float:
    """The relative error; refused when it is more than rounding, for the time of a wrong answer means nothing."""
    size = error(found, truth)
    if not size <= limit:
        raise NumericalError(
            f"{name} is wrong: its relative error is {size:.1e}, and rounding explains {limit:.0e}"
        )
    return size
