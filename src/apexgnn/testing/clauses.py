"""The clauses of the contract, one function each; a clause that does not hold raises `ContractError` with its name."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from apexgnn.attribution import Attribution
from apexgnn.errors import InputError
from apexgnn.peers.explainer import Claims
from apexgnn.testing.snapshot import same, state_of


class Explains(Protocol):
    """Anything with this method can be checked."""

    def explain(
        self, model: nn.Module, data: Data, *, target: Any = None, index: Any = None, seed: int = 0
    ) -> Attribution:
        """Explain a graph, a batch of graphs, or a node."""


class ContractError(AssertionError):
    """An explainer breaks a clause; the message names it.

    >>> raise ContractError("sign: no negative scores")
    Traceback (most recent call last):
        ...
    apexgnn.testing.clauses.ContractError: sign: no negative scores
    """


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Who is checked, on what, and what it claims."""

    explainer: Explains
    claims: Claims
    model: nn.Module
    graphs: Sequence[Data]
    index: int | None
    seed: int

    def explain(self, model: nn.Module, data: Data, **options: Any) -> Attribution:
        """Ask, with the trial\'s node and seed unless told otherwise."""
        return self.explainer.explain(model, data, **{"index": self.index, "seed": self.seed} | options)


def _require(holds: object, clause: str, what: str) -> None:
    if not holds:
        raise ContractError(f"{clause}: {what}")


def _close(a: Tensor, b: Tensor, clause: str, what: str) -> None:
    """Equal up to rounding: a thousand units in the last place of the largest entry."""
    scale = float(torch.cat([a, b]).abs().max()) if a.numel() else 0.0
    tolerance = 1000 * torch.finfo(a.dtype).eps * scale
    _require(a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=tolerance), clause, what)


def result(trial: Trial) -> None:
    """Shapes, kinds, finite values."""
    data = trial.graphs[0]
    result = trial.explain(trial.model, data)
    nodes, features, edges = result.nodes, result.features, result.edges
    _require(
        isinstance(result, Attribution) and result.method, "result", "an Attribution with its method's name"
    )
    _require(nodes.shape == (data.num_nodes,), "result", "one score per node")
    _require(features is None or features.shape == data.x.shape, "result", "features as x, or none")
    _require(edges is None or edges.shape == (data.num_edges,), "result", "one score per edge, or none")
    single = (result.target, result.score, result.baseline_score, result.residual)
    _require(all(value.shape == (1,) for value in single), "result", "one target, score, residual per graph")
    _require(result.exact == (result.certificate is not None), "result", "exact only with a certificate")
    _require(isinstance(result.evaluations, int) and result.evaluations >= 0, "result", "evaluations counted")
    values = [v for v in (nodes, features, edges, *single[1:]) if v is not None]
    _require(all(bool(torch.isfinite(v).all()) for v in values), "result", "finite values")
    _require(all(not v.requires_grad for v in values), "result", "no gradients attached")


def score(trial: Trial) -> None:
    """The reported score is the model's, of the predicted class or of the one asked for; the residual adds up."""
    data, model = trial.graphs[0], copy.deepcopy(trial.model).eval()
    with torch.no_grad():
        logits = model(data.x, data.edge_index)
    row = logits[0 if trial.index is None else trial.index]
    for target in (None, 0, logits.size(1) - 1):
        result = trial.explain(trial.model, data, target=target)
        column = int(row.argmax()) if target is None else target
        _require(int(result.target) == column, "score", f"target={target} explains column {column}")
        _close(result.score, row[column : column + 1], "score", "the model's own output")
        if result.features is not None:
            _close(result.features.sum(1), result.nodes, "score", "nodes are features summed")
        change = result.score - result.baseline_score
        scale = float(result.nodes.abs().sum() + change.abs())
        error = float(result.nodes.sum() - change - result.residual)
        _require(abs(error) <= 1e-4 * scale, "score", "residual is Σφ − (f(X) − f(X′))")


def sign(trial: Trial) -> None:
    """A method that claims no signs gives no negative scores."""
    for data in trial.graphs:
        _require(bool((trial.explain(trial.model, data).nodes >= 0).all()), "sign", "no negative scores")


def determinism(trial: Trial) -> None:
    """The same seed, the same scores; and any seed, where no dice are claimed."""
    data = trial.graphs[0]
    first, again = (trial.explain(trial.model, data).nodes for _ in range(2))
    _require(torch.equal(first, again), "determinism", "the same seed gives the same scores")
    if not trial.claims.random:
        other = trial.explain(trial.model, data, seed=trial.seed + 1).nodes
        _require(torch.equal(first, other), "determinism", "a method without dice ignores the seed")


def _double(data: Data) -> Data:
    data = copy.copy(data)
    data.x = data.x.double()
    return data


def precision(trial: Trial) -> None:
    """Scores have the dtype of the features."""
    single = trial.explain(trial.model, trial.graphs[0])
    double = trial.explain(copy.deepcopy(trial.model).double(), _double(trial.graphs[0]))
    for result, dtype in ((single, torch.float32), (double, torch.float64)):
        kinds = {
            v.dtype for v in (result.nodes, result.features, result.edges, result.score) if v is not None
        }
        _require(kinds == {dtype}, "precision", f"{dtype} in, {dtype} out")


def batch(trial: Trial) -> None:
    """A batch is its graphs, each explained under the same seed."""
    model = copy.deepcopy(trial.model).double()
    graphs = [_double(graph) for graph in trial.graphs]
    joined = Batch.from_data_list(graphs)
    index = None if trial.index is None else joined.ptr[:-1] + trial.index
    whole = trial.explain(model, joined, index=index)
    alone = [trial.explain(model, graph) for graph in graphs]
    for field in ("nodes", "target", "score"):
        together, each = getattr(whole, field), torch.cat([getattr(result, field) for result in alone])
        _close(together.double(), each.double(), "batch", f"{field} as one by one")
    # a residual may be nothing but rounding, so it is compared on the scale of the score
    together, each = (
        whole.score + whole.residual,
        torch.cat([result.score + result.residual for result in alone]),
    )
    _close(together, each, "batch", "residual as one by one")


def no_edges(trial: Trial) -> None:
    """A graph without edges is explained too."""
    data = Data(x=trial.graphs[0].x, edge_index=torch.empty(2, 0, dtype=torch.long))
    _require(
        bool(torch.isfinite(trial.explain(trial.model, data).nodes).all()), "edges", "works without edges"
    )


def refusal(trial: Trial) -> None:
    """NaN and targets that do not exist are refused by a typed error."""
    data = copy.copy(trial.graphs[0])
    data.x = data.x.clone()
    data.x[-1, -1] = torch.nan
    attempts: list[tuple[str, Callable[[], Attribution]]] = [
        ("NaN features", lambda: trial.explain(trial.model, data)),
        ("a target out of range", lambda: trial.explain(trial.model, trial.graphs[0], target=10**6)),
    ]
    for what, attempt in attempts:
        try:
            attempt()
        except InputError:
            continue
        raise ContractError(f"refusal: {what} must raise apexgnn.InputError")


def untouched(trial: Trial) -> None:
    """Mode, parameters, gradients, hooks, attributes, data and random state stay; also after an error."""
    model, data = copy.deepcopy(trial.model).train(), copy.deepcopy(trial.graphs[0])
    for number, parameter in enumerate(model.parameters()):
        parameter.grad = torch.full_like(parameter, float(number))
        parameter.requires_grad_(number % 2 == 0)
    before = state_of(model, data)
    trial.explain(model, data)
    _require(same(before, state_of(model, data)), "untouched", "the model, the data and the random state")
    try:
        trial.explain(model, data, target=10**6)
    except InputError:
        _require(same(before, state_of(model, data)), "untouched", "also after an error")


def equivariance(trial: Trial) -> None:
    """Rename the nodes, keep the order of the edges: the scores are renamed, no more."""
    model, data = copy.deepcopy(trial.model).double(), _double(trial.graphs[0])
    order = torch.arange(data.num_nodes).flip(0).roll(1)
    name = order.argsort()
    renamed = Data(x=data.x[order], edge_index=name[data.edge_index])
    index = None if trial.index is None else int(name[trial.index])
    plain, moved = trial.explain(model, data), trial.explain(model, renamed, index=index)
    tolerance = 1e-6 * float(plain.nodes.abs().max())
    same = torch.allclose(plain.nodes[order], moved.nodes, rtol=0, atol=tolerance)
    _require(same, "equivariance", "renaming nodes renames scores")


def dummy(trial: Trial) -> None:
    """A node added beside the graph cannot reach the explained one."""
    data = copy.copy(trial.graphs[0])
    data.x = torch.cat([data.x, data.x[:1]])
    score = trial.explain(trial.model, data).nodes[-1]
    _require(score == 0, "dummy", "a node that cannot be seen scores zero")


class _Mixed(nn.Module):
    """Another model's output columns, mixed: column 0 stays, column 1 becomes 2·f₀ − 3·f₁."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        out = self.model(x, edge_index) if batch is None else self.model(x, edge_index, batch=batch)
        return torch.stack([out[:, 0], 2 * out[:, 0] - 3 * out[:, 1]], dim=1)


def linearity(trial: Trial) -> None:
    """The explanation of 2f − 3g is 2 times that of f less 3 times that of g."""
    model, data = copy.deepcopy(trial.model).double(), _double(trial.graphs[0])
    first, second = (trial.explain(model, data, target=target).nodes for target in (0, 1))
    mixed = trial.explain(_Mixed(model), data, target=1).nodes
    _close(mixed, 2 * first - 3 * second, "linearity", "explaining 2f − 3g")


def completeness(trial: Trial) -> None:
    """The scores add up to f(X) − f(X′), to rounding in double precision."""
    result = trial.explain(copy.deepcopy(trial.model).double(), _double(trial.graphs[0]))
    scale = float(result.nodes.abs().sum() + result.score.abs().sum())
    _require(float(result.residual.abs()) <= 1e-12 * scale, "completeness", "scores add up to f(X) − f(X′)")
