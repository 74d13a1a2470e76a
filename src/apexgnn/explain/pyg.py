"""The adapter for `torch_geometric.explain.Explainer`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import Explanation
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.config import MaskType, ModelMode, ModelReturnType, ModelTaskLevel

from apexgnn.errors import InputError
from apexgnn.explain.attribute import attribute


class APEX(ExplainerAlgorithm):
    """Exact Aumann–Shapley attribution as an algorithm of PyTorch Geometric's Explainer.

    The masks keep their signs. The `Explanation` also carries `residual`, `certificate`, `score` and
    `baseline_score`. Probabilities are refused: the model must return raw scores.

    Args:
        baseline: as for `apexgnn.attribute`.

    >>> from torch_geometric.explain import Explainer
    >>> from apexgnn.nn import PolyGIN
    >>> explainer = Explainer(
    ...     PolyGIN(2, 3, hidden_channels=4, task="node"),
    ...     algorithm=APEX(),
    ...     explanation_type="model",
    ...     node_mask_type="attributes",
    ...     model_config=dict(mode="multiclass_classification", task_level="node", return_type="raw"),
    ... )
    >>> explanation = explainer(torch.rand(3, 2), torch.tensor([[0, 1], [1, 2]]), index=2)
    >>> explanation.node_mask.shape, explanation.certificate.points
    (torch.Size([3, 2]), 8)
    """

    def __init__(self, baseline: Any = None) -> None:
        super().__init__()
        self.baseline = baseline

    def supports(self) -> bool:
        """Node masks by attributes or by object; raw scores; graph and node level."""
        wanted = self.explainer_config
        if wanted.edge_mask_type is not None or wanted.node_mask_type not in (
            MaskType.attributes,
            MaskType.object,
        ):
            raise InputError(
                "Explainer",
                got=f"node_mask_type={wanted.node_mask_type}, edge_mask_type={wanted.edge_mask_type}",
                expected="node_mask_type 'attributes' or 'object', and no edge mask",
            )
        if self.model_config.return_type != ModelReturnType.raw:
            raise InputError(
                "model_config.return_type",
                got=str(self.model_config.return_type.value),
                expected="'raw': probabilities are not polynomial",
            )
        if self.model_config.task_level not in (ModelTaskLevel.graph, ModelTaskLevel.node):
            raise InputError(
                "model_config.task_level",
                got=str(self.model_config.task_level.value),
                expected="'graph' or 'node'",
            )
        return True

    @torch.no_grad()
    def forward(
        self,
        model: nn.Module,
        x: Tensor,
        edge_index: Tensor,
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> Explanation:
        """Explain the output row `index` of a node task, or every graph of a batch."""
        node_task, mode = self.model_config.task_level == ModelTaskLevel.node, self.model_config.mode.value
        if node_task and (index is None or torch.as_tensor(index).numel() != 1):
            raise InputError("index", got=str(index), expected="one node for a node-level explanation")
        row = int(index) if node_task and index is not None else None

        multiclass = self.model_config.mode == ModelMode.multiclass_classification

        def call(model: nn.Module, data: Data) -> Any:
            output = model(data.x, data.edge_index, **kwargs)
            if not multiclass and isinstance(output, Tensor) and output.dim() > 1 and output.size(-1) > 1:
                got = f"{output.size(-1)} columns"
                raise InputError("model output", got=got, expected=f"one, as the mode is {mode!r}")
            return output

        data = Data(x=x, edge_index=edge_index, batch=None if node_task else kwargs.get("batch"))
        column: Any = 0
        if multiclass:
            column = int(target.reshape(-1)[row]) if row is not None else target
        result = attribute(model, data, target=column, baseline=self.baseline, index=row, call=call)
        by_object = self.explainer_config.node_mask_type == MaskType.object
        return Explanation(
            node_mask=result.nodes.unsqueeze(1) if by_object else result.features,
            residual=result.residual,
            certificate=result.certificate,
            score=result.score,
            baseline_score=result.baseline_score,
        )
