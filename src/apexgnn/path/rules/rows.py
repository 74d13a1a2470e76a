"""Gathering and scattering whole rows, which is what message passing spends its time on.

    gather     y[k, e] = x[k, i(e)]               scatter     y[k, v] = Σ_{e: i(e)=v} x[k, e]

Each is the other's transpose, so each is the other's backward pass. Both treat all K samples at once, and the
scatter sums contiguous bags of rows, sorted once for each index and pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from apexgnn.aggregation import Bags
from apexgnn.path.path import Path


def gather_rows(path: Path, x: Tensor, index: Tensor) -> Tensor:
    """Samples [K, N, C] to [K, E, C]."""
    return _Gather.apply(x, index, path) if x.requires_grad else x.index_select(1, index)


def scatter_rows(path: Path, x: Tensor, index: Tensor, rows: int) -> Tensor:
    """Samples [K, E, C] to sums [K, rows, C]."""
    return _Scatter.apply(x, index, rows, path) if x.requires_grad else _sums(path, x, index, rows)


def row_index(index: Tensor) -> Tensor | None:
    """The one-dimensional index behind one that was expanded over the columns, as scatter_add wants it."""
    if index.dim() == 1:
        return index
    return index[:, 0] if index.dim() == 2 and (index.stride(1) == 0 or index.size(1) == 1) else None


def _sums(path: Path, x: Tensor, index: Tensor, rows: int) -> Tensor:
    samples, entries, width = x.shape
    if rows == 1 and not index.any():
        return x.sum(dim=1, keepdim=True)
    every = _sorted(path, index, rows)
    bags = Bags(every.index[: samples * entries], every.start[: samples * rows])
    return bags.sum(x.reshape(samples * entries, width)).view(samples, rows, width)


def _sorted(path: Path, index: Tensor, rows: int) -> Bags:
    """Which entries each row sums, for as many samples as there will ever be."""
    for known, wide, bags in path.sorted:
        if wide == rows and torch.equal(known, index):
            return bags
    count, samples = torch.bincount(index, minlength=rows), len(path.grid.wanted)
    if count.numel() > rows:
        raise IndexError(f"row {count.numel() - 1} of {rows}")
    bags = Bags(index.argsort(stable=True), count.cumsum(0) - count).repeated(samples, index.numel())
    path.sorted.append((index.clone(), rows, bags))
    return bags


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, path: Path) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows, ctx.path = x.size(1), path
        return x.index_select(1, index)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        return _sums(ctx.path, grad, index, ctx.rows), None, None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, rows: int, path: Path) -> Tensor:
        ctx.save_for_backward(index)
        return _sums(path, x, index, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (index,) = ctx.saved_tensors
        return grad.index_select(1, index), None, None, None
