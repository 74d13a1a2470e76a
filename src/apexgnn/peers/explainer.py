"""What all explainers have in common: they answer one question about a model that they leave alone, under a seed.

A peer sees the model in evaluation mode with parameters that ask for no gradients. One that sets, masks or hooks
anything gets a deep copy; the others get the model itself, which is put back afterwards as attribution does it.
Dice are thrown in a random state of their own. A peer returns scores of features, of
nodes or of edges; what is missing follows from what is there: nodes are features summed, or the end points of
the best edges. None of the peers carries a certificate; the residual Σφ − (f(X) − f(X′)) is reported for all,
also for those that never promised that it vanishes.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from apexgnn.attribution import Attribution
from apexgnn.conversion import Conversion, node_scores
from apexgnn.errors import BaselineError, InputError, NumericalError
from apexgnn.explain.question import Question, Target, ask, resolve_target
from apexgnn.explain.untouched import untouched
from apexgnn.peers.case import Case, Scores, joined, part_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What an explainer promises, and `apexgnn.testing.check_explainer` holds it to.

    Attributes:
        random: another seed may give other scores.
        signed: scores may be negative.
        equivariant: under one seed, renaming the nodes renames the scores.
        dummy: a node that cannot reach the explained output scores zero.
        linear: the explanation of a·f + b·g is a times that of f plus b times that of g.
        complete: the scores add up to f(X) − f(X′).
    """

    random: bool = False
    signed: bool = True
    equivariant: bool = True
    dummy: bool = False
    linear: bool = False
    complete: bool = False


@dataclass(frozen=True, kw_only=True)
class Explainer(ABC):
    """An explainer: `explain(model, data)` gives an `Attribution`.

    Attributes:
        baseline: the input X′ that the residual, and methods that have a start, refer to; zero by default. Only
            "apex" takes a distribution of them.
        conversion: how edge scores become node scores: "endpoints", "mean" or "sum".

    A class says what it promises in `claims`, in `batched` whether it takes many graphs in one pass, and in
    `intrusive` whether it sets, masks or hooks anything in the model.
    """

    baseline: Any = None
    conversion: Conversion | str = Conversion.ENDPOINTS

    name: ClassVar[str]
    claims: ClassVar[Claims] = Claims()
    batched: ClassVar[bool] = False
    intrusive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        Conversion(self.conversion)
        counts = [
            f.name for f in fields(self) if isinstance(getattr(self, f.name), int) and f.name != "baseline"
        ]
        for count in counts:
            if getattr(self, count) < 1:
                got = repr(getattr(self, count))
                raise InputError(f"{self.name} option {count}", got=got, expected="at least 1")

    def explain(
        self,
        model: nn.Module,
        data: Data,
        *,
        target: Target = None,
        index: int | Tensor | None = None,
        seed: int = 0,
    ) -> Attribution:
        """Explain one graph, every graph of a batch, or one node.

        Args:
            model: called as PyTorch Geometric calls its models; it is not touched.
            data: a `Data` or `Batch`.
            target: the output column, an int or one per graph; None explains the predicted class.
            index: the node to explain, for a node task; one in each graph of a batch.
            seed: of everything random; each graph of a batch is explained as it would be alone.

        >>> from apexgnn import peers
        >>> from apexgnn.nn import GIN
        >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
        >>> peers.get("occlusion").explain(GIN(2, 2, hidden_channels=4), data, target=1).target
        tensor([1])
        """
        with torch.inference_mode(False), torch.enable_grad(), self._lent(model) as own:
            question = ask(own, data, baseline=self.baseline, index=index)
            _check_one_baseline(question, self.name)
            logits, start = question.logits(question.x), question.logits(question.baseline)
            case = Case(question, resolve_target(target, logits))
            found = self._found(case, seed)
        picked = case.target.unsqueeze(1)
        return _attribution(
            case,
            found,
            score=logits.gather(1, picked).squeeze(1),
            baseline_score=start.gather(1, picked).squeeze(1),
            conversion=Conversion(self.conversion),
            method=self.name,
        )

    def fit(
        self,
        model: nn.Module,
        dataset: Sequence[Data] | Data,
        *,
        index: Sequence[int] | None = None,
        seed: int = 0,
    ) -> Self:
        """An explainer that has learned what it learns from a data set; itself, where nothing is learned."""
        return self

    @contextmanager
    def _lent(self, model: nn.Module) -> Iterator[nn.Module]:
        """The model in evaluation mode: a copy for methods that change it, else itself, to be given back."""
        if self.intrusive:
            yield copy.deepcopy(model).eval().requires_grad_(False)
            return
        with untouched(model):
            yield model.eval()

    @abstractmethod
    def _scores(self, case: Case) -> Scores:
        """Answer a single question (any batch, where `batched`)."""

    def _found(self, case: Case, seed: int) -> Scores:
        """Scores of the whole batch in one go or graph by graph, each under the seed."""
        if self.batched or case.question.graphs == 1:
            return self._seeded(case, seed)
        parts = [part_of(case, graph) for graph in range(case.question.graphs)]
        return joined(case, [(part, self._seeded(part.case, seed)) for part in parts])

    def _seeded(self, case: Case, seed: int) -> Scores:
        """Under the seed, without dice too: the model may throw some."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self._scores(case)


def _check_one_baseline(question: Question, name: str) -> None:
    if len(question.baselines) > 1:
        raise BaselineError(
            "baseline",
            got=f"{len(question.baselines)} baselines",
            expected=f"one for {name}",
            fix="apex, apexgnn.attribute and apexgnn.integrated_gradients take several",
        )


def _attribution(
    case: Case, found: Scores, *, score: Tensor, baseline_score: Tensor, conversion: Conversion, method: str
) -> Attribution:
    """Fill in what follows from what was found."""
    question = case.question
    features, nodes, edges = found.features, found.nodes, found.edges
    if nodes is None and features is not None:
        nodes = features.sum(dim=1)
    if nodes is None and edges is not None:
        nodes = node_scores(edges, case.edge_index, num_nodes=question.x.size(0), conversion=conversion)
    assert nodes is not None
    nodes = nodes.detach().to(question.x)
    if not all(bool(torch.isfinite(v).all()) for v in (nodes, score, baseline_score)):
        raise NumericalError(
            f"{method}: a score left the range of {question.x.dtype}; use float64 or rescale"
        )
    return Attribution(
        features=None if features is None else features.detach().to(question.x),
        nodes=nodes,
        target=case.target,
        score=score,
        baseline_score=baseline_score,
        residual=question.per_graph(nodes) - (score - baseline_score),
        evaluations=found.evaluations,
        exact=False,
        certificate=None,
        method=method,
        edges=None if edges is None else edges.detach().to(question.x),
    )
