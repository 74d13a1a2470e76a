"""Our own exact attribution in the peers' company, so that one loop can run them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch_geometric.data import Data

from apexgnn.attribution import Attribution
from apexgnn.explain import attribute
from apexgnn.explain.question import Target
from apexgnn.explain.untouched import untouched
from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer


@dataclass(frozen=True, kw_only=True)
class Apex(Explainer):
    """`apexgnn.attribute` of the model in evaluation mode; refuses what is not polynomial.

    >>> import torch
    >>> from apexgnn.nn import PolyGIN
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> Apex().explain(PolyGIN(2, 2, hidden_channels=4), data).exact
    True
    """

    name: ClassVar[str] = "apex"
    claims: ClassVar[Claims] = Claims(dummy=True, linear=True, complete=True)
    batched: ClassVar[bool] = True

    def explain(
        self,
        model: nn.Module,
        data: Data,
        *,
        target: Target = None,
        index: int | Tensor | None = None,
        seed: int = 0,
    ) -> Attribution:
        """Exact, with its certificate; the seed has nothing to decide."""
        with untouched(model):
            model.eval()
            return attribute(model, data, target=target, baseline=self.baseline, index=index)

    def _scores(self, case: Case) -> Scores:
        question = case.question
        result = attribute(question.model, question.data, target=case.target, baseline=question.baseline)
        return Scores(features=result.features, evaluations=result.evaluations)
