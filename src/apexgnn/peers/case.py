"""What an explainer is asked and what it answers, for one graph or cut out of a batch."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from apexgnn.errors import InputError
from apexgnn.explain.question import Question, ask
from apexgnn.replicas import evaluate_copies


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A checked question, and the explained column of every graph."""

    question: Question
    target: Tensor

    @property
    def model(self) -> nn.Module:
        """In evaluation mode; a private copy where the explainer is intrusive."""
        return cast(nn.Module, self.question.model)

    @property
    def index(self) -> int | None:
        """The explained node of a single graph, or None for a graph task."""
        return None if self.question.index is None else int(self.question.index)

    @property
    def edge_index(self) -> Tensor:
        """[2, E]."""
        return self.question.data.edge_index

    @property
    def options(self) -> dict[str, Any]:
        """What the model is given beside x and edge_index."""
        data = self.question.data
        given = {} if self.question.index is not None else {"batch": self.question.owner}
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
                lambda data: question.call(question.model, data), question.data, x=x, index=self.index
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
    index = None if question.index is None else int(number[question.index[graph]])
    alone = ask(question.model, data, baseline=question.baseline[nodes], index=index, call=question.call)
    return Part(Case(alone, case.target[graph : graph + 1]), nodes, edges)


def joined(case: Case, parts: list[tuple[Part, Scores]]) -> Scores:
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
