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

from apexgnn.errors import GraphError, InputError, TargetError
from apexgnn.explain.baselines import resolve_baselines

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
        """What the model returns for these features on this graph."""
        data = copy.copy(self.data)
        data.x = x
        return self.call(self.model, data)

    def logits(self, x: Tensor) -> Tensor:
        """The scores [G, C] by a plain call of the model, without gradients."""
        with torch.no_grad():
            return self.rows(self.output(x).unsqueeze(0))[0]

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
    x = check_graph(data)
    _check_fits(model, x)
    batch = getattr(data, "batch", None)
    owner = torch.zeros(x.size(0), dtype=torch.long, device=x.device) if batch is None else batch
    where = None if index is None else _check_index(index, owner)
    if where is not None and where.numel() == 1:
        owner = torch.zeros_like(owner)
    return Question(
        model=model,
        data=data,
        x=x,
        baselines=tuple(resolve_baselines(baseline, x, owner)),
        owner=owner,
        graphs=int(owner.max()) + 1,
        index=where,
        call=call or pyg_call(model, node_task=index is not None),
        own_call=call is not None,
    )


def pyg_call(model: Model, *, node_task: bool) -> Call:
    """PyTorch Geometric's calling convention: model(x, edge_index[, batch=…][, edge_weight=…])."""
    function = model.forward if isinstance(model, nn.Module) else model
    weighted = "edge_weight" in inspect.signature(function).parameters

    def call(model: Any, data: Data) -> Any:
        options = {}
        if not node_task:
            batch = data.batch
            options["batch"] = data.edge_index.new_zeros(data.x.size(0)) if batch is None else batch
        if weighted and data.edge_weight is not None:
            options["edge_weight"] = data.edge_weight
        return model(data.x, data.edge_index, **options)

    return call


def check_graph(data: Data) -> Tensor:
    """Refuse malformed graphs before any kernel sees them; return a plain copy of the features."""
    x, edge_index = getattr(data, "x", None), getattr(data, "edge_index", None)
    if not isinstance(x, Tensor):
        raise GraphError("data.x", got=type(x).__name__, expected="a tensor of node features [N, F]")
    if x.dim() != 2:
        raise GraphError("data.x", got=f"shape {tuple(x.shape)}", expected="two dimensions [N, F]")
    if x.dtype not in (torch.float32, torch.float64):
        raise GraphError(
            "data.x", got=str(x.dtype), expected="float32 or float64", fix="data.x = data.x.float()"
        )
    if x.size(0) == 0:
        raise GraphError("data.x", got="no nodes", expected="at least one node")
    _check_finite("data.x", x)
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.size(0) != 2:
        got = (
            f"shape {tuple(edge_index.shape)}"
            if isinstance(edge_index, Tensor)
            else type(edge_index).__name__
        )
        raise GraphError("data.edge_index", got=got, expected="a tensor [2, E]")
    _check_device("data.edge_index", edge_index, x)
    _check_integers("data.edge_index", edge_index, below=x.size(0), what="node")
    batch = getattr(data, "batch", None)
    if batch is not None:
        _check_batch(batch, x, edge_index)
    for name in ("edge_weight", "edge_attr"):
        value = getattr(data, name, None)
        if isinstance(value, Tensor):
            if value.size(0) != edge_index.size(1):
                expected = f"one row for each of the {edge_index.size(1)} edges"
                raise GraphError(f"data.{name}", got=f"shape {tuple(value.shape)}", expected=expected)
            _check_finite(f"data.{name}", value)
            _check_device(f"data.{name}", value, x)
    return x.detach().clone()


def _check_batch(batch: Tensor, x: Tensor, edge_index: Tensor) -> None:
    if batch.shape != x.shape[:1]:
        raise GraphError(
            "data.batch", got=f"shape {tuple(batch.shape)}", expected=f"one entry per node [{len(x)}]"
        )
    _check_device("data.batch", batch, x)
    _check_integers("data.batch", batch, below=None, what="graph")
    present = torch.bincount(batch) > 0
    if not bool(present.all()):
        missing = int((~present).nonzero()[0])
        raise GraphError(
            "data.batch", got=f"no node of graph {missing}", expected="at least one node in every graph"
        )
    crossing = batch[edge_index[0]] != batch[edge_index[1]]
    if bool(crossing.any()):
        edge = int(crossing.nonzero()[0])
        raise GraphError(
            "data.edge_index", got=f"edge {edge} between two graphs", expected="edges inside graphs"
        )


def _check_finite(where: str, value: Tensor) -> None:
    finite = torch.isfinite(value)
    if not bool(finite.all()):
        bad = (~finite).nonzero()
        raise GraphError(
            where,
            got=f"{len(bad)} NaN or infinite values, first at {bad[0].tolist()}",
            expected="finite values",
        )


def _check_integers(where: str, value: Tensor, *, below: int | None, what: str) -> None:
    if value.dtype != torch.int64:
        raise GraphError(where, got=str(value.dtype), expected="int64", fix=f"{where} = {where}.long()")
    if value.numel() == 0:
        return
    low, high = int(value.min()), int(value.max())
    if low < 0 or (below is not None and high >= below):
        limit = f" below {below}" if below is not None else ""
        raise GraphError(
            where, got=f"{what} {low if low < 0 else high}", expected=f"{what} numbers from 0{limit}"
        )


def _check_device(where: str, value: Tensor, x: Tensor) -> None:
    if value.device != x.device:
        raise GraphError(where, got=str(value.device), expected=f"the device of data.x, {x.device}")


def _check_fits(model: Model, x: Tensor) -> None:
    """The features against the model: device, dtype, and width where the model says what it takes."""
    if not isinstance(model, nn.Module):
        return
    first = next((p for p in model.parameters() if p.is_floating_point()), None)
    if first is not None and first.device != x.device:
        raise GraphError("data.x", got=f"device {x.device}", expected=f"the model's device {first.device}")
    if first is not None and first.dtype != x.dtype:
        raise GraphError("data.x", got=str(x.dtype), expected=f"the model's dtype {first.dtype}")
    config = getattr(model, "config", {})
    width = config.get("in_channels") if isinstance(config, dict) else None
    width = width if width is not None else getattr(model, "in_channels", None)
    if isinstance(width, int) and width > 0 and width != x.size(1):
        raise GraphError(
            "data.x", got=f"{x.size(1)} features", expected=f"{width}, the width the model was built for"
        )


def _check_index(index: int | Tensor, owner: Tensor) -> Tensor:
    """The nodes [G]: one, or one in each graph of a batch."""
    where = torch.as_tensor(index)
    if isinstance(index, bool) or where.is_floating_point() or where.dtype == torch.bool or where.dim() > 1:
        raise TargetError("index", got=repr(index), expected="the number of a node")
    where = where.long().reshape(-1).to(owner.device)
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
            fix="explain several nodes of one graph by apexgnn.attribute_many",
        )
    return where


def resolve_target(target: Target, logits: Tensor) -> Tensor:
    """The explained column for each graph [G]: as given, or the predicted class."""
    return logits.argmax(dim=1) if target is None else check_target(target, *logits.shape)


def check_target(target: int | Tensor, graphs: int, columns: int) -> Tensor:
    """The given columns [G], if they exist."""
    value = torch.as_tensor(target)
    if value.is_floating_point() or value.dtype == torch.bool:
        raise TargetError("target", got=f"{value.dtype} {target}", expected="whole numbers")
    value = value.long().reshape(-1)
    if value.numel() not in (1, graphs):
        raise TargetError(
            "target", got=f"{value.numel()} entries", expected=f"one, or one for each of {graphs} graphs"
        )
    if bool(((value < 0) | (value >= columns)).any()):
        wrong = int(value[(value < 0) | (value >= columns)][0])
        raise TargetError("target", got=str(wrong), expected=f"an output column from 0 to {columns - 1}")
    return value.expand(graphs).clone()
