"""Grad-CAM on the last graph layer's output h [N, C] (Pope et al., 2019).

    α_c = mean over nodes of ∂f/∂h_vc,     φ_v = ReLU(Σ_c α_c h_vc),     scaled to [0, 1] within each graph

Edges, where they are asked for, are the means of their end points (`apexgnn.conversion.edge_scores`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer
from apexgnn.peers.layers import last_layer


@dataclass(frozen=True, kw_only=True)
class GradCAM(Explainer):
    """Gradient-weighted activations of the last graph layer.

    >>> from torch_geometric.data import Data
    >>> from apexgnn.nn import PolyGIN
    >>> _ = torch.manual_seed(0)
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> GradCAM().explain(PolyGIN(2, 2, hidden_channels=4), data).nodes.shape
    torch.Size([3])
    """

    name: ClassVar[str] = "gradcam"
    claims: ClassVar[Claims] = Claims(signed=False)
    intrusive: ClassVar[bool] = True
    batched: ClassVar[bool] = True

    def _scores(self, case: Case) -> Scores:
        rows: list[Tensor] = []

        def keep(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
            rows.append(output.detach().requires_grad_())
            return rows[-1]

        last_layer(case.model).register_forward_hook(keep)
        score = case.score(case.question.x).sum()
        (gradient,) = torch.autograd.grad(score, rows[-1])
        owner, graphs = case.question.owner, case.question.graphs
        size = torch.bincount(owner, minlength=graphs).to(gradient).unsqueeze(1)
        alpha = gradient.new_zeros(graphs, gradient.size(1)).index_add(0, owner, gradient) / size
        nodes = (alpha[owner] * rows[-1]).sum(1).relu()
        return Scores(nodes=_scaled(nodes, owner, graphs))


def _scaled(nodes: Tensor, owner: Tensor, graphs: int) -> Tensor:
    """Shift and scale each graph's scores to [0, 1]; equal scores become 0."""
    low = nodes.new_zeros(graphs).scatter_reduce(0, owner, nodes, "amin", include_self=False)[owner]
    high = nodes.new_zeros(graphs).scatter_reduce(0, owner, nodes, "amax", include_self=False)[owner]
    span = high - low
    return torch.where(span > 0, (nodes - low) / span, torch.zeros_like(nodes))
