"""What all explainers have in common: they answer one question about a copy of the model, under a seed.

A peer sees a deep copy in evaluation mode whose parameters ask for no gradients, so whatever it sets, masks or
hooks stays away from the user's model. It runs under its own random state. It returns scores of features, of
nodes or of edges; what is missing follows from what is there: nodes are features summed, or the end points of
the best edges. None of the peers carries a certificate; the residual Σφ − (f(X) − f(X′)) is reported for all,
also for those that never promised that it vanishes.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from apexgnn.attribution import Attribution
from apexgnn.conversion import Conversion, node_scores
from apexgnn.errors import InputError, NumericalError
from apexgnn.explain.question import Question, Target, ask, resolve_target
from apexgnn.replicas import evaluate_copies


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A checked question about a private copy of the model, and the explained column of every graph."""

    question: Question
    target: Tensor

    @property
    def model(self) -> nn.Module:
        """The copy: in evaluation mode, free to be changed."""
        return cast(nn.Module, self.question.model)

    @property
    def index(self) -> int | None:
        """The explained node, or None for a graph task."""
        return self.question.index

    @property
    def edge_index(self) -> Tensor:
        """[2, E]."""
        return self.question.data.edge_index

    @property
    def options(self) -> dict[str, Any]:
        """What the model is given beside x and edge_index."""
        data = self.question.data
        given = {} if self.index is not None else {"batch": self.question.owner}
        weighted = "edge_weight" in inspect.signature(self.model.forward).parameters
        return (
            given | {"edge_weight": data.edge_weight} if weighted and data.edge_weight is not None else given
        )

    def score(self, x: Tensor) -> Tensor:
        """[G], the explained scores at these features, with gradients."""
        logits = self.question.rows(self.question.output(x).unsqueeze(0))[0]
        return logits.gather(1, self.target.unsqueeze(1)).squeeze(1)

    def copies(self, x: Tensor) -> Tensor:
        """[R, C], the logits of R versions [R, N, F] of a single graph's features, without gradients."""
        question = self.question
        with torch.no_grad():
            return evaluate_copies(
                lambda data: question.call(question.model, data), question.data, x=x, index=question.index
            )

    def classes(self) -> int:
        """The label of a single graph, for methods that speak of probabilities."""
        columns = self.question.logits(self.question.x).size(1)
        if columns < 2:
            raise InputError("model", got="one output column", expected="one column per class")
        return int(self.target)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What a method found: scores of features [N, F], nodes [N] or edges [E], and what it cost."""

    features: Tensor | None = None
    nodes: Tensor | None = None
    edges: Tensor | None = None
    evaluations: int = 1


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
        baseline: the input X′ that the residual, and methods that have a start, refer to; zero by default.
        conversion: how edge scores become node scores: "endpoints", "mean" or "sum".

    A class says what it promises in `claims`, and in `batched` whether it takes many graphs in one pass.
    """

    baseline: Any = None
    conversion: Conversion | str = Conversion.ENDPOINTS

    name: ClassVar[str]
    claims: ClassVar[Claims] = Claims()
    batched: ClassVar[bool] = False

    def explain(
        self,
        model: nn.Module,
        data: Data,
        *,
        target: Target = None,
        index: int | None = None,
        seed: int = 0,
    ) -> Attribution:
        """Explain one graph, every graph of a batch, or one node.

        Args:
            model: called as PyTorch Geometric calls its models; it is not touched.
            data: a `Data` or `Batch`.
            target: the output column, an int or one per graph; None explains the predicted class.
            index: the node to explain, for a node task.
            seed: of everything random; each graph of a batch is explained as it would be alone.
        """
        with torch.inference_mode(False), torch.enable_grad():
            private = copy.deepcopy(model).eval().requires_grad_(False)
            question = ask(private, data, baseline=self.baseline, index=index)
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

    @abstractmethod
    def _scores(self, case: Case) -> Scores:
        """Answer a single question (any batch, where `batched`)."""

    def _found(self, case: Case, seed: int) -> Scores:
        """Scores of the whole batch, under the seed, in one go or graph by graph."""
        with torch.random.fork_rng(devices=[]):
            if self.batched or case.question.graphs == 1:
                torch.manual_seed(seed)
                return self._scores(case)
            parts = []
            for graph in range(case.question.graphs):
                torch.manual_seed(seed)
                part = part_of(case, graph)
                parts.append((part, self._scores(part.case)))
            return _joined(case, parts)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One graph of a batch, and where its nodes and edges stand there."""

    case: Case
    nodes: Tensor
    edges: Tensor


def part_of(case: Case, graph: int) -> Part:
    """Cut one graph out of a batch; the order of its nodes and edges stays."""
    question = case.question
    nodes = question.owner == graph
    edges = nodes[question.data.edge_index[0]]
    number = nodes.cumsum(0) - 1
    weight = question.data.edge_weight
    data = Data(
        x=question.x[nodes],
        edge_index=number[question.data.edge_index[:, edges]],
        edge_weight=None if weight is None else weight[edges],
    )
    alone = ask(question.model, data, baseline=question.baseline[nodes], call=question.call)
    return Part(Case(alone, case.target[graph : graph + 1]), nodes, edges)


def _joined(case: Case, parts: list[tuple[Part, Scores]]) -> Scores:
    """The scores of all graphs in the batch's own order."""
    nodes, edges = case.question.x.size(0), case.edge_index.size(1)

    def gather(field: str, length: int, where: str) -> Tensor | None:
        values = [getattr(scores, field) for _, scores in parts]
        if values[0] is None:
            return None
        whole = values[0].new_zeros(length, *values[0].shape[1:])
        for (part, _), value in zip(parts, values, strict=True):
            whole[getattr(part, where)] = value
        return whole

    return Scores(
        features=gather("features", nodes, "nodes"),
        nodes=gather("nodes", nodes, "nodes"),
        edges=gather("edges", edges, "edges"),
        evaluations=max(scores.evaluations for _, scores in parts),
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
