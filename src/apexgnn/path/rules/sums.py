"""Sums, means, and the gathering and scattering that message passing is made of. All linear.

    gather    y_e = x_{i(e)}            index_select, gather, x[i]
    scatter   y_v = Σ_{e: i(e)=v} x_e   scatter_add, index_add, segment sums

Means divide by counts, which are constants. A maximum or minimum is not linear and has no rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from apexgnn.path.path import Path
from apexgnn.path.rules.algebra import total
from apexgnn.path.rules.registry import degree_of, in_place, like, rule, samplewise
from apexgnn.path.rules.rows import gather_rows, row_index, scatter_rows
from apexgnn.path.rules.structure import shifted
from apexgnn.path.tensor import PathTensor


def _dims(x: PathTensor, dim: int | Sequence[int] | None) -> tuple[int, ...]:
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(1, x.dim() + 1))
    return tuple(map(shifted, [dim] if isinstance(dim, int) else dim))


@rule("sum")
def _sum(
    path: Path, x: PathTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> PathTensor:
    return like(x, x.samples.sum(_dims(x, dim), keepdim=keepdim, dtype=dtype) if x.dim() else x.samples)


@rule("mean")
def _mean(
    path: Path, x: PathTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> PathTensor:
    return like(x, x.samples.mean(_dims(x, dim), keepdim=keepdim, dtype=dtype) if x.dim() else x.samples)


@rule("index_select")
def _index_select(path: Path, x: PathTensor, dim: int, index: Tensor) -> PathTensor:
    if _whole_rows(x, dim) and index.dim() == 1:
        return like(x, gather_rows(path, x.samples, index))
    return like(x, x.samples.index_select(shifted(dim), index))


@rule("gather")
def _gather(path: Path, x: PathTensor, dim: int, index: Tensor, **_: Any) -> PathTensor:
    return like(x, x.samples.gather(shifted(dim), index.expand(len(x.samples), *index.shape)))


def _whole_rows(x: Any, dim: int) -> bool:
    """Whether this is about rows [N, C] of polynomials, which the fast sums are made for."""
    return isinstance(x, PathTensor) and x.dim() == 2 and dim in (0, -2) and x.device.type == "cpu"


def _fits(x: Tensor, source: Tensor) -> bool:
    return x.shape[1:] == source.shape[1:] and x.dtype == source.dtype


def _bring(path: Path, *operands: Any) -> tuple[Any, ...]:
    """Both operands of a scatter, sampled alike, with their full sample axis."""
    degree = max(map(degree_of, operands))
    resolution = path.grid.at(degree)
    values = [
        o.at(resolution) if isinstance(o, PathTensor) else o.unsqueeze(0).expand(len(resolution), *o.shape)
        for o in operands
    ]
    return degree, resolution, *values


def _onto(path: Path, x: Any, index: Tensor, source: PathTensor) -> PathTensor:
    """x and the sums of whole rows of the source; fresh zeros are not added."""
    sums = like(source, scatter_rows(path, source.samples, index, x.shape[0]))
    return sums if path.is_blank(x) else total(path, torch.add, x, sums)


@rule("scatter_add")
def _scatter_add(path: Path, x: Any, dim: int, index: Tensor, src: Any) -> PathTensor:
    rows = row_index(index) if _whole_rows(src, dim) and index.shape == src.shape else None
    if rows is not None and _fits(x, src):
        return _onto(path, x, rows, src)
    degree, resolution, into, values = _bring(path, x, src)
    values = values[(slice(None), *map(slice, index.shape))]
    out = into.scatter_add(shifted(dim), index.expand(len(resolution), *index.shape), values)
    return PathTensor(out, degree, resolution, path)


@rule("index_add")
def _index_add(path: Path, x: Any, dim: int, index: Tensor, source: Any, *, alpha: float = 1) -> PathTensor:
    if _whole_rows(source, dim) and _fits(x, source) and alpha == 1 and index.dim() == 1:
        return _onto(path, x, index, source)
    degree, resolution, into, values = _bring(path, x, source)
    return PathTensor(into.index_add(shifted(dim), index, values, alpha=alpha), degree, resolution, path)


@rule("scatter_reduce")
def _scatter_reduce(
    path: Path, x: Any, dim: int, index: Tensor, src: Any, reduce: str, *, include_self: bool = True
) -> PathTensor:
    if reduce not in ("sum", "mean") or (reduce == "sum" and not include_self):
        raise path.refuse("scatter_reduce", f"reduces by {reduce!r}, and only sums and means are linear")
    degree, resolution, into, values = _bring(path, x, src)
    index = index.expand(len(resolution), *index.shape)
    out = into.scatter_reduce(shifted(dim), index, values, reduce, include_self=include_self)
    return PathTensor(out, degree, resolution, path)


@rule("segment_reduce")
def _segment_reduce(path: Path, x: PathTensor, reduce: str, **options: Any) -> PathTensor:
    if reduce not in ("sum", "mean"):
        raise path.refuse("segment_reduce", f"reduces by {reduce!r}, and only sums and means are linear")
    return like(x, torch.stack([torch.segment_reduce(s.contiguous(), reduce, **options) for s in x.samples]))


samplewise("cumsum", "trace")
in_place("scatter_add", "index_add", "scatter_reduce")
