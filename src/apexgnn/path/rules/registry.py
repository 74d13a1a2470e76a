"""The rule book: which torch function does what to polynomials in τ.

A rule is a function `rule(path, *args, **kwargs)` that gets the arguments of the torch function, among them
at least one PathTensor of degree ≥ 1, and returns PathTensors. Constants reach it as plain tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional
from torch import Tensor

from apexgnn.path.path import Path
from apexgnn.path.resolution import Resolution
from apexgnn.path.tensor import IN_PLACE, RULES, Function, PathTensor, path_tensors

_PLACES = (torch, torch.Tensor, torch.nn.functional)


def functions(name: str) -> list[Function]:
    """Every torch function and method of this name.

    >>> len(functions("square"))  # torch.square, Tensor.square
    2
    """
    found = [getattr(place, name) for place in _PLACES if callable(getattr(place, name, None))]
    if not found:
        raise LookupError(f"torch has no function named {name}")
    return list(dict.fromkeys(found))


def rule(*names: str) -> Callable[[Function], Function]:
    """Enter a rule under all torch functions of these names."""

    def enter(body: Function) -> Function:
        for name in names:
            RULES.update(dict.fromkeys(functions(name), body))
        return body

    return enter


def in_place(*names: str) -> None:
    """Derive `add_` from `add`, and so on: compute the result, and take its place."""
    for name in names:
        body = RULES[functions(name)[0]]
        for function in functions(name + "_"):
            RULES[function] = body
            IN_PLACE.add(function)


def samplewise(*names: str) -> None:
    """Functions that are affine in their first argument, applied to one sample after the other."""
    for name in names:
        for function in functions(name):
            RULES[function] = _each_sample(function, name)


def _each_sample(function: Function, name: str) -> Function:
    def body(path: Path, x: PathTensor, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(x, PathTensor) or path_tensors((args, kwargs)):
            raise path.refuse(name, "is known to be affine in its first argument only")
        results = [function(sample, *args, **kwargs) for sample in x.samples]
        if isinstance(results[0], Tensor):
            return like(x, torch.stack(results)).alias_of(x)
        return tuple(like(x, torch.stack(part)).alias_of(x) for part in zip(*results, strict=True))

    return body


def like(x: PathTensor, samples: Tensor) -> PathTensor:
    """Samples of the same degree at the same resolution as x: the result of something linear."""
    return PathTensor(samples, x.degree, x.resolution, x.path)


def meet(path: Path, degree: int, *operands: Any, dims: int = 0) -> tuple[Resolution, list[Any]]:
    """Bring polynomial operands to the resolution of `degree`, with their dimensions aligned for broadcasting."""
    resolution = path.grid.at(degree)
    dims = max(dims, *(o.dim() for o in operands if isinstance(o, Tensor)))
    return resolution, [aligned(o.at(resolution), dims) if isinstance(o, PathTensor) else o for o in operands]


def aligned(samples: Tensor, dims: int) -> Tensor:
    """Insert dimensions of size one behind the sample axis, so that [K, *shape] broadcasts as shape does."""
    missing = dims + 1 - samples.dim()
    return samples[(slice(None), *[None] * missing)] if missing > 0 else samples


def degree_of(x: Any) -> int:
    """The degree of a PathTensor; anything else is a constant."""
    return x.degree if isinstance(x, PathTensor) else 0
