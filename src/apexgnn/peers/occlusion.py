"""Occlusion: put one node at a time to the baseline and read how much the logit falls.

    φ_v = f(X) − f(X with row v replaced by row v of X′)

All N versions of a graph are evaluated side by side (Zeiler and Fergus, 2014, for images).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer


@dataclass(frozen=True, kw_only=True)
class Occlusion(Explainer):
    """One node at a time to the baseline.

    >>> from torch_geometric.data import Data
    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> Occlusion().explain(GIN(2, 2, hidden_channels=4), data).evaluations
    4
    """

    name: ClassVar[str] = "occlusion"
    claims: ClassVar[Claims] = Claims(dummy=True, linear=True)

    def _scores(self, case: Case) -> Scores:
        x, baseline = case.question.x, case.question.baseline
        hidden = torch.eye(x.size(0), dtype=torch.bool).unsqueeze(-1)
        versions = torch.cat([x.unsqueeze(0), torch.where(hidden, baseline, x)])
        logits = case.copies(versions)[:, int(case.target)]
        return Scores(nodes=logits[0] - logits[1:], evaluations=len(versions))
