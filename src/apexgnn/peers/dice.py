"""The control that every table needs: scores drawn uniformly from [0, 1], which know nothing of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer


@dataclass(frozen=True, kw_only=True)
class Random(Explainer):
    """Node scores by lot.

    >>> from torch_geometric.data import Data
    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> Random().explain(GIN(2, 2, hidden_channels=4), data).nodes.shape
    torch.Size([3])
    """

    name: ClassVar[str] = "random"
    claims: ClassVar[Claims] = Claims(random=True, signed=False, equivariant=False)

    def _scores(self, case: Case) -> Scores:
        return Scores(nodes=torch.rand(case.question.x.size(0)), evaluations=0)
