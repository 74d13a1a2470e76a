"""PGExplainer, by PyTorch Geometric (Luo et al., 2020): one network that scores edges, learned over a data set.

    ω_uv = MLP([z_u, z_v (, z_target)]),   z the last graph layer's output
    fit:      −log p_c(G with messages × σ((ω + logistic noise)/τ)) + size + entropy,   τ from t₀ down to t₁
    explain:  σ(ω)

PyTorch Geometric keeps the coefficients on the class, where one instance's leak into the next; here each algorithm
gets its own. It takes one Adam step per graph and epoch. The defaults are PyTorch Geometric's, whose temperature goes
from 5 to 2; the authors' goes to 1.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain.algorithm import PGExplainer as PyGPGExplainer

from apexgnn.errors import InputError
from apexgnn.explain.question import ask, resolve_target
from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer
from apexgnn.peers.gnnexplainer import connect, labels
from apexgnn.peers.layers import message_passing


@dataclass(frozen=True, kw_only=True)
class PGExplainer(Explainer):
    """PyTorch Geometric's PGExplainer on private copies; `fit` first. Edge scores in [0, 1].

    Attributes:
        epochs, lr: of Adam.
        edge_size, edge_ent: weights of the size and the entropy of the mask.
        temperature: from the first epoch to the last.
        fitted: the network that `fit` has learned.

    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> model = GIN(2, 2, hidden_channels=4)
    >>> PGExplainer(epochs=2).fit(model, [data]).explain(model, data).edges.shape
    torch.Size([2])
    """

    epochs: int = 30
    lr: float = 0.003
    edge_size: float = 0.05
    edge_ent: float = 1.0
    temperature: tuple[float, float] = (5.0, 2.0)
    fitted: PyGPGExplainer | None = field(default=None, repr=False, compare=False)

    name: ClassVar[str] = "pgexplainer"
    claims: ClassVar[Claims] = Claims(signed=False, dummy=True)
    intrusive: ClassVar[bool] = True

    def fit(
        self,
        model: nn.Module,
        dataset: Sequence[Data] | Data,
        *,
        index: Sequence[int] | None = None,
        seed: int = 0,
    ) -> Self:
        """Learn the edge network for the model's own predictions on single graphs, or on nodes of one graph."""
        private = copy.deepcopy(model).eval().requires_grad_(False)
        cases = [c for c in _cases(private, dataset, index) if c.edge_index.size(1)]
        if not cases:
            raise InputError("dataset", got="no graph with an edge", expected="at least one")
        masked = message_passing(private)
        with (
            torch.random.fork_rng(devices=[]),
            torch.inference_mode(False),
            torch.enable_grad(),
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("ignore", "Converting a tensor with requires_grad")  # PyG's float(loss)
            torch.manual_seed(seed)
            algorithm = self._algorithm(node_task=index is not None).to(cases[0].question.x.dtype)
            for epoch in range(self.epochs):
                for case in cases:
                    algorithm.train(
                        epoch,
                        masked,
                        case.question.x,
                        case.edge_index,
                        target=labels(case),
                        index=case.index,
                        **case.options,
                    )
        return replace(self, fitted=algorithm)

    def _algorithm(self, *, node_task: bool) -> PyGPGExplainer:
        algorithm = PyGPGExplainer(self.epochs, self.lr)
        algorithm.coeffs = {
            "edge_size": self.edge_size,
            "edge_ent": self.edge_ent,
            "temp": list(self.temperature),
            "bias": 0.01,
        }
        connect(algorithm, node_task=node_task)
        return algorithm

    def _scores(self, case: Case) -> Scores:
        if self.fitted is None:
            raise InputError(
                "pgexplainer",
                got="an explainer that has learned nothing",
                expected="a fitted one",
                fix="explainer = explainer.fit(model, graphs)",
            )
        if not case.edge_index.size(1):
            return Scores(edges=case.question.x.new_zeros(0))
        explanation = copy.deepcopy(self.fitted).to(case.question.x.dtype)(
            message_passing(case.model),
            case.question.x,
            case.edge_index,
            target=labels(case),
            index=case.index,
            **case.options,
        )
        return Scores(edges=explanation.edge_mask)


def _cases(model: nn.Module, dataset: Sequence[Data] | Data, index: Sequence[int] | None) -> list[Case]:
    """Single graphs, or nodes of one graph, each with the model's own prediction as its class."""
    if isinstance(dataset, Data) and index is None:
        raise InputError("dataset", got="one graph", expected="a sequence of graphs, or index= for its nodes")
    if index is None:
        questions = [ask(model, data) for data in dataset]
    elif isinstance(dataset, Data):
        questions = [ask(model, dataset, index=node) for node in index]
    else:
        questions = [ask(model, data, index=node) for data, node in zip(dataset, index, strict=True)]
    return [Case(q, _predicted(q.logits(q.x))) for q in questions]


def _predicted(logits: Tensor) -> Tensor:
    return resolve_target(None, logits)
