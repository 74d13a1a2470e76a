"""What is asked: which score of which model, at which input, against which baseline. Checked before anything runs.

A graph task has one score per graph of the batch. A node task has one score, at the node `index`, or one per graph
of a batch, each at its own node.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from apexgnn.errors import InputError, TargetError
from apexgnn.explain.baselines import resolve_baselines
from apexgnn.explain.graph_checks import check_fits, check_graph
from apexgnn.explain.untouched import one_call

Model = Callable[..., Any]
Call = Callable[[Any, Data], Any]
Target = int | Tensor | None


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A checked model call, and the input and baseline between which its score is explained.

    Attributes:
        x: [N, F], the end of every path.
        baselines: [N, F] each, where the paths start.
        owner: [N], the graph that each node belongs to.
        graphs: G, how many scores there are.
        index: [G], the nodes whose scores are explained, for a node task.
        own_call: whether the user said how the model is to be called.
    """

    model: Model
    data: Data
    x: Tensor
    baselines: tuple[Tensor, ...]
    owner: Tensor
    graphs: int
    index: Tensor | None
    call: Call
    own_call: bool = False

    @property
    def baseline(self) -> Tensor:
        """The only baseline, or the first."""
        return self.baselines[0]

    def each(self) -> Iterator[Question]:
        """The same question from each of the baselines."""
        return (replace(self, baselines=(one,)) for one in self.baselines)

    def output(self, x: Any) -> Any:
        """What the model returns for these features, on a copy of this graph, into which it may write."""
        data = copy.copy(self.data)
        data.x = None
        data = data.apply(lambda value: value.clone())
        data.x = x
        return self.call(self.model, data)

    def logits(self, x: Tensor) -> Tensor:
        """The scores [G, C] by a plain call of the model as it was found, without gradients."""
        with one_call(self.model), torch.no_grad():
            return self.alone(x)[0]

    def alone(self, x: Tensor) -> Tensor:
        """The scores [1, G, C] by one plain call of the model as it is now."""
        output = self.output(x.clone())
        if not isinstance(output, Tensor):
            fix = "pick the scores out: call=lambda model, data: model(data.x, data.edge_index)[0]"
            got = f"a {type(output).__name__}"
            raise InputError("model output", got=got, expected="a tensor of scores", fix=fix)
        return self.rows(output.unsqueeze(0))

    def rows(self, values: Tensor) -> Tensor:
        """Bring outputs [K, …] of K evaluations to [K, G, C]."""
        if values.dim() == 2 and self.index is None and self.graphs == 1 and values.size(1) > 1:
            values = values.unsqueeze(1)
        if values.dim() == 2:
            values = values.unsqueeze(-1)
        nodes = self.x.size(0)
        if self.index is not None:
            if values.dim() != 3 or values.size(1) != nodes:
                raise InputError(
                    "model output",
                    got=f"shape {tuple(values.shape[1:])}",
                    expected=f"one row for each of the {nodes} nodes, because index= names a node",
                    fix="leave index out for a graph task",
                )
            return values[:, self.index]
        if values.dim() != 3 or values.size(1) != self.graphs:
            fix = "name the node with index=" if values.dim() == 3 and values.size(1) == nodes else ""
            raise InputError(
                "model output",
                got=f"shape {tuple(values.shape[1:])}",
                expected=f"one row for each of the {self.graphs} graphs",
                fix=fix,
            )
        return values

    def per_graph(self, values: Tensor) -> Tensor:
        """Sum values [N] over the nodes of each graph."""
        return values.new_zeros(self.graphs).index_add(0, self.owner, values)


def ask(
    model: Model,
    data: Data,
    *,
    baseline: Any = None,
    index: int | Tensor | None = None,
    call: Call | None = None,
) -> Question:
    """Check everything that can be checked without running the model."""
    if not callable(model):
        raise InputError("model", got=type(model).__name__, expected="a model that can be called")
    x = check_graph(data)
    check_fits(model, x, width=call is None)
    batch = getattr(data, "batch", None)
    owner = torch.zeros(x.size(0), dtype=torch.long, device=x.device) if batch is None else batch
    baselines = tuple(resolve_baselines(baseline, x, owner))
    where = None if index is None else _check_index(index, owner)
    if where is not None and where.numel() == 1:
        owner = torch.zeros_like(owner)
    return Question(
        model=model,
        data=data,
        x=x,
        baselines=baselines,
        owner=owner,
        graphs=int(owner.max()) + 1,
        index=where,
        call=call or pyg_call(node_task=index is not None),
        own_call=call is not None,
    )


def pyg_call(*, node_task: bool) -> Call:
    """PyTorch Geometric's calling convention: model(x, edge_index[, batch=…][, edge_weight=…])."""

    def call(model: Any, data: Data) -> Any:
        options = {}
        if not node_task:
            batch = data.batch
            options["batch"] = data.edge_index.new_zeros(data.x.size(0)) if batch is None else batch
        if data.edge_weight is not None and _takes_weights(model):
            options["edge_weight"] = data.edge_weight
        return model(data.x, data.edge_index, **options)

    return call


def _takes_weights(model: Model) -> bool:
    """By name, or among `**options` that are handed on."""
    function = model.forward if isinstance(model, nn.Module) else model
    parameters = inspect.signature(function).parameters
    return "edge_weight" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _check_index(index: int | Tensor, owner: Tensor) -> Tensor:
    """The nodes [G]: one, or one in each graph of a batch."""
    where = whole_numbers("index", index).to(owner.device)
    outside = (where < 0) | (where >= owner.numel())
    if bool(outside.any()):
        expected = f"a node from 0 to {owner.numel() - 1}"
        raise TargetError("index", got=str(int(where[outside][0])), expected=expected)
    graphs = int(owner.max()) + 1
    if where.numel() != 1 and not torch.equal(owner[where], torch.arange(graphs, device=owner.device)):
        raise TargetError(
            "index",
            got=f"{where.numel()} nodes",
            expected="one node, or one in each graph of a batch, in order",
            fix="explain several nodes of one graph by apexgnn.attribute_nodes",
        )
    return where


def whole_numbers(where: str, value: Any) -> Tensor:
    """Numbers of nodes or columns, as int64 in one dimension.

    >>> whole_numbers("index", [3, 1]).tolist(), whole_numbers("index", 2).tolist()
    ([3, 1], [2])
    """
    try:
        numbers = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise TargetError(where, got=repr(value), expected="whole numbers") from None
    if numbers.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        raise TargetError(where, got=f"{numbers.dtype} {value}", expected="whole numbers")
    return numbers.long().reshape(-1)


def check_memory(memory: float) -> None:
    """A bound that work can be divided by."""
    if not isinstance(memory, int | float) or not 0 < memory < float("inf"):
        raise InputError("memory", got=repr(memory), expected="a positive number of bytes")


def resolve_target(target: Target, logits: Tensor) -> Tensor:
    """The explained column for each graph [G]: as given, or the predicted class."""
    return logits.argmax(dim=1) if target is None else check_target(target, *logits.shape)


def check_target(target: int | Tensor, graphs: int, columns: int) -> Tensor:
    """The given columns [G], if they exist."""
    value = whole_numbers("target", target)
    if value.numel() not in (1, graphs):
        raise TargetError(
            "target", got=f"{value.numel()} entries", expected=f"one, or one for each of {graphs} graphs"
        )
    if bool(((value < 0) | (value >= columns)).any()):
        wrong = int(value[(value < 0) | (value >= columns)][0])
        raise TargetError("target", got=str(wrong), expected=f"an output column from 0 to {columns - 1}")
    return value.expand(graphs).clone()
