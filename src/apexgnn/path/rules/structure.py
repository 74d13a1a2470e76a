"""Operations that only move entries: shapes, indexing, joining, casting. The degree stays.

The sample axis comes first, so dimensions counted from the front move up by one, and those counted from the back
stay. What torch would return as a view is noted as one, because writing into it in place would be seen elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from apexgnn.path.path import Path
from apexgnn.path.rules.algebra import total
from apexgnn.path.rules.registry import degree_of, like, rule, samplewise
from apexgnn.path.tensor import METADATA, RULES, Function, PathTensor


def shifted(dim: int) -> int:
    """The same dimension, counted with the sample axis in front."""
    return dim + 1 if dim >= 0 else dim


def _spread(sizes: Sequence[Any]) -> tuple[Any, ...]:
    """`f(2, 3)` and `f((2, 3))` mean the same."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else tuple(sizes)


@rule("view", "reshape")
def _reshape(path: Path, x: PathTensor, *shape: Any) -> PathTensor:
    if shape and isinstance(shape[0], torch.dtype):
        raise path.refuse("view", "reads the bits of the numbers")
    return like(x, x.samples.reshape(len(x.samples), *_spread(shape))).alias_of(x)


@rule("flatten")
def _flatten(path: Path, x: PathTensor, start_dim: int = 0, end_dim: int = -1) -> PathTensor:
    if x.dim() == 0:
        return _reshape(path, x, 1)
    return like(x, x.samples.flatten(shifted(start_dim % x.dim()), shifted(end_dim % x.dim()))).alias_of(x)


@rule("unsqueeze")
def _unsqueeze(path: Path, x: PathTensor, dim: int) -> PathTensor:
    return like(x, x.samples.unsqueeze(shifted(dim))).alias_of(x)


@rule("squeeze")
def _squeeze(path: Path, x: PathTensor, dim: int | Sequence[int] | None = None) -> PathTensor:
    dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    return like(x, x.samples.squeeze(tuple(map(shifted, dims)))).alias_of(x)


@rule("transpose", "swapaxes", "swapdims")
def _transpose(path: Path, x: PathTensor, dim0: int, dim1: int) -> PathTensor:
    return like(x, x.samples.transpose(shifted(dim0), shifted(dim1))).alias_of(x)


@rule("t", "adjoint")
def _t(path: Path, x: PathTensor) -> PathTensor:
    return x if x.dim() < 2 else _transpose(path, x, -1, -2)


_TURNED: dict[str, Function] = {
    "T": lambda x: x.permute(*reversed(range(x.dim()))) if x.dim() > 1 else x,
    "mT": lambda x: x.transpose(-1, -2),
}
METADATA.update((getattr(Tensor, name).__get__, turned) for name, turned in _TURNED.items())


@rule("permute")
def _permute(path: Path, x: PathTensor, *dims: Any) -> PathTensor:
    order = [d % x.dim() + 1 for d in _spread(dims)]
    return like(x, x.samples.permute(0, *order)).alias_of(x)


@rule("expand", "broadcast_to")
def _expand(path: Path, x: PathTensor, *sizes: Any) -> PathTensor:
    shape = _spread(sizes)
    lent = x.samples[(slice(None), *[None] * (len(shape) - x.dim()))]
    return like(x, lent.expand(len(lent), *shape)).alias_of(x)


@rule("cat", "concat", "concatenate")
def _cat(path: Path, tensors: Sequence[Any], dim: int = 0, *, out: None = None) -> PathTensor:
    return _join(path, torch.cat, tensors, dim)


@rule("stack")
def _stack(path: Path, tensors: Sequence[Any], dim: int = 0, *, out: None = None) -> PathTensor:
    return _join(path, torch.stack, tensors, dim)


def _join(path: Path, join: Any, tensors: Sequence[Any], dim: int) -> PathTensor:
    """Empty lists of numbers join anything in torch, and are left out."""
    tensors = [t for t in tensors if t.shape != (0,)]
    degree = max(map(degree_of, tensors))
    resolution = path.grid.at(degree)
    parts = [
        t.at(resolution) if isinstance(t, PathTensor) else t.unsqueeze(0).expand(len(resolution), *t.shape)
        for t in tensors
    ]
    return PathTensor(join(parts, shifted(dim)), degree, resolution, path)


@rule("unbind", "__iter__")
def _unbind(path: Path, x: PathTensor, dim: int = 0) -> Any:
    return tuple(like(x, part).alias_of(x) for part in x.samples.unbind(shifted(dim)))


@rule("split")
def _split(path: Path, x: PathTensor, size: int | list[int], dim: int = 0) -> tuple[PathTensor, ...]:
    return tuple(like(x, part).alias_of(x) for part in x.samples.split(size, shifted(dim)))


@rule("chunk")
def _chunk(path: Path, x: PathTensor, chunks: int, dim: int = 0) -> tuple[PathTensor, ...]:
    return tuple(like(x, part).alias_of(x) for part in x.samples.chunk(chunks, shifted(dim)))


@rule("narrow")
def _narrow(path: Path, x: PathTensor, dim: int, start: int, length: int) -> PathTensor:
    return like(x, x.samples.narrow(shifted(dim), start, length)).alias_of(x)


@rule("__getitem__")
def _getitem(path: Path, x: PathTensor, index: Any) -> PathTensor:
    parts = index if isinstance(index, tuple) else (index,)
    fixed = [i for i, p in enumerate(parts) if not (p is None or p is ... or isinstance(p, slice))]
    arrays = any(isinstance(parts[i], bool) or not isinstance(parts[i], int | np.integer) for i in fixed)
    if arrays and fixed[-1] - fixed[0] + 1 != len(fixed):  # then torch moves the indexed axes to the front
        return like(x, torch.stack([sample[index] for sample in x.samples]))
    return like(x, x.samples[(slice(None), *parts)]).alias_of(x)


def _where(path: Path, condition: Any, a: Any, b: Any) -> PathTensor:
    """A choice by a constant condition."""
    if isinstance(condition, PathTensor):
        raise path.refuse("where", "chooses by a function of the input")
    return total(path, lambda a, b: torch.where(condition, a, b), a, b, dims=condition.dim())


RULES[torch.where] = _where
RULES[Tensor.where] = lambda path, a, condition, b: _where(path, condition, a, b)


@rule("contiguous")
def _contiguous(path: Path, x: PathTensor, memory_format: Any = None) -> PathTensor:
    """A copy or the tensor itself: which of them, torch decides by strides, and those of samples are others."""
    return like(x, x.samples).alias_of(x)


def _enter_casts() -> None:
    """Casts between floating dtypes are linear; one that changes nothing returns the tensor itself, as in torch."""
    for name in ("to", "type_as", "float", "double", "cpu"):

        def cast(path: Path, x: Any, *args: Any, _name: str = name, **options: Any) -> Any:
            args = tuple(a.samples if isinstance(a, PathTensor) else a for a in args)
            if not isinstance(x, PathTensor):
                return getattr(x, _name)(*args, **options)
            samples = getattr(x.samples, _name)(*args, **options)
            if not samples.is_floating_point():
                raise path.refuse(_name, "rounds to whole numbers")
            return x if samples is x.samples else like(x, samples)

        rule(name)(cast)


_enter_casts()
samplewise(
    *[
        "movedim",
        "moveaxis",
        "unflatten",
        "tile",
        "repeat",
        "repeat_interleave",
        "roll",
        "flip",
        "select",
        "diagonal",
        "tril",
        "triu",
    ],
    *["tensor_split", "masked_fill", "pad", "take_along_dim", "conv1d", "conv2d", "avg_pool1d", "avg_pool2d"],
)
