"""Malformed graphs are refused before any kernel sees them, with what was got, what was expected, and where."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from apexgnn.errors import GraphError


def check_graph(data: Data) -> Tensor:
    """Refuse malformed graphs before any kernel sees them; return a plain copy of the features."""
    if not hasattr(data, "edge_index"):
        raise GraphError("data", got=type(data).__name__, expected="a Data or Batch of PyTorch Geometric")
    x, edge_index = getattr(data, "x", None), data.edge_index
    if not isinstance(x, Tensor):
        raise GraphError("data.x", got=type(x).__name__, expected="a tensor of node features [N, F]")
    if x.dim() != 2:
        raise GraphError("data.x", got=f"shape {tuple(x.shape)}", expected="two dimensions [N, F]")
    if x.dtype not in (torch.float32, torch.float64):
        raise GraphError(
            "data.x", got=str(x.dtype), expected="float32 or float64", fix="data.x = data.x.float()"
        )
    if x.layout != torch.strided:
        raise GraphError("data.x", got=str(x.layout), expected="a dense tensor", fix="data.x.to_dense()")
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
        _check_batch(batch, x, edge_index, graphs=data.num_graphs if isinstance(data, Batch) else 0)
    _check_edge_values(data, x, edge_index)
    return x.detach().clone()


def _check_edge_values(data: Data, x: Tensor, edge_index: Tensor) -> None:
    weight = getattr(data, "edge_weight", None)
    if weight is not None and not (isinstance(weight, Tensor) and weight.dim() == 1):
        got = f"shape {tuple(weight.shape)}" if isinstance(weight, Tensor) else type(weight).__name__
        raise GraphError("data.edge_weight", got=got, expected="a tensor [E]")
    if weight is not None and weight.dtype != x.dtype:
        fix = "data.edge_weight = data.edge_weight.to(data.x.dtype)"
        expected = f"the dtype of data.x, {x.dtype}"
        raise GraphError("data.edge_weight", got=str(weight.dtype), expected=expected, fix=fix)
    for name in ("edge_weight", "edge_attr"):
        value = getattr(data, name, None)
        if isinstance(value, Tensor):
            if value.dim() == 0 or value.size(0) != edge_index.size(1):
                expected = f"one row for each of the {edge_index.size(1)} edges"
                raise GraphError(f"data.{name}", got=f"shape {tuple(value.shape)}", expected=expected)
            _check_finite(f"data.{name}", value)
            _check_device(f"data.{name}", value, x)


def _check_batch(batch: Tensor, x: Tensor, edge_index: Tensor, *, graphs: int) -> None:
    if not isinstance(batch, Tensor) or batch.shape != x.shape[:1]:
        got = f"shape {tuple(batch.shape)}" if isinstance(batch, Tensor) else type(batch).__name__
        raise GraphError("data.batch", got=got, expected=f"a tensor with one entry per node [{len(x)}]")
    _check_device("data.batch", batch, x)
    _check_integers("data.batch", batch, below=None, what="graph")
    present = torch.bincount(batch, minlength=graphs) > 0
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


def check_fits(model: Any, x: Tensor, *, width: bool) -> None:
    """The features against the model: device, dtype, and, if asked for, width where the model says it."""
    if not isinstance(model, nn.Module):
        return
    first = next((p for p in model.parameters() if p.is_floating_point()), None)
    if first is not None and first.device != x.device:
        raise GraphError("data.x", got=f"device {x.device}", expected=f"the model's device {first.device}")
    if first is not None and first.dtype != x.dtype:
        raise GraphError("data.x", got=str(x.dtype), expected=f"the model's dtype {first.dtype}")
    config = getattr(model, "config", {})
    wanted = config.get("in_channels") if isinstance(config, dict) else None
    wanted = wanted if wanted is not None else getattr(model, "in_channels", None)
    if width and isinstance(wanted, int) and wanted > 0 and wanted != x.size(1):
        raise GraphError(
            "data.x", got=f"{x.size(1)} features", expected=f"{wanted}, the width the model was built for"
        )
