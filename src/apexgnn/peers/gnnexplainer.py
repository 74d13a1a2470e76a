"""GNNExplainer, by PyTorch Geometric (Ying et al., 2019): one mask per edge, learned for one instance.

    minimise over m:   CE(f(G with messages × σ(m)), c) + a·Σ σ(m) + b·mean H(σ(m))

with Adam; a = `edge_size`, b = `edge_ent`. PyTorch Geometric's algorithm leaves masks on the model's layers and asks
for gradients of edges that no message used; here it gets a private copy, and a graph without edges gets no scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.explain import ExplainerConfig, ModelConfig
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.algorithm import GNNExplainer as PyGGNNExplainer

from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer
from apexgnn.peers.layers import message_passing


def connect(algorithm: ExplainerAlgorithm, *, node_task: bool, node_mask: str | None = None) -> None:
    """Tell PyTorch Geometric's algorithm what it explains: a class, of raw logits, by edges."""
    algorithm.connect(
        ExplainerConfig(explanation_type="phenomenon", node_mask_type=node_mask, edge_mask_type="object"),
        ModelConfig(
            mode="multiclass_classification", task_level="node" if node_task else "graph", return_type="raw"
        ),
    )


def labels(case: Case) -> Tensor:
    """The class where PyTorch Geometric looks for it: per graph [1], or at the explained node of [N]."""
    label = case.classes()
    return torch.full((1 if case.index is None else case.question.x.size(0),), label)


@dataclass(frozen=True, kw_only=True)
class GNNExplainer(Explainer):
    """PyTorch Geometric's GNNExplainer on a private copy; edge scores in [0, 1].

    Attributes:
        epochs, lr: of Adam.
        edge_size, edge_ent: weights of the size and the entropy of the edge mask.
        node_mask: learn a mask of features beside it: None, "object", "attributes" or "common_attributes";
            it changes the objective, the scores remain those of the edges.

    >>> from torch_geometric.data import Data
    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> GNNExplainer(epochs=2).explain(GIN(2, 2, hidden_channels=4), data).edges.shape
    torch.Size([2])
    """

    epochs: int = 100
    lr: float = 0.01
    edge_size: float = 0.005
    edge_ent: float = 1.0
    node_mask: str | None = None

    name: ClassVar[str] = "gnnexplainer"
    claims: ClassVar[Claims] = Claims(random=True, signed=False, dummy=True)
    intrusive: ClassVar[bool] = True

    def _scores(self, case: Case) -> Scores:
        target = labels(case)
        if not case.edge_index.size(1):
            return Scores(edges=case.question.x.new_zeros(0), evaluations=0)
        algorithm = PyGGNNExplainer(self.epochs, self.lr, edge_size=self.edge_size, edge_ent=self.edge_ent)
        connect(algorithm, node_task=case.index is not None, node_mask=self.node_mask)
        index = None if case.index is None else torch.tensor([case.index])
        explanation = algorithm(
            message_passing(case.model),
            case.question.x,
            case.edge_index,
            target=target,
            index=index,
            **case.options,
        )
        return Scores(edges=explanation.edge_mask, evaluations=self.epochs)
