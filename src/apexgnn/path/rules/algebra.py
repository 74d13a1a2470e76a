"""Sums and products of polynomials.

    deg(p + q) = max(deg p, deg q)      deg(p · q) = deg p + deg q      deg(pⁿ) = n deg p

A sum keeps what its operands are; a product is formed at the resolution of its own degree, sample by sample.
Batch norm with fixed statistics is affine, and dropout outside training is nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from apexgnn.path.path import Path
from apexgnn.path.resolution import lobatto
from apexgnn.path.rules.registry import aligned, degree_of, functions, in_place, like, meet, rule
from apexgnn.path.tensor import RULES, PathTensor, path_tensors


def product(path: Path, multiply: Callable[..., Tensor], *factors: Any) -> PathTensor:
    """Σ of products of one entry from each factor, computed by `multiply` sample by sample."""
    degree = sum(map(degree_of, factors))
    resolution, values = meet(path, degree, *factors)
    return PathTensor(multiply(*values), degree, resolution, path)


def total(path: Path, add: Callable[..., Tensor], *terms: Any, dims: int = 0) -> PathTensor:
    """An affine combination of the terms, computed by `add` sample by sample, in at least `dims` dimensions."""
    degree = max(map(degree_of, terms))
    moving = [t for t in terms if isinstance(t, PathTensor)]
    if all(t.resolution == moving[0].resolution for t in moving):
        dims = max(dims, *(t.dim() for t in terms if isinstance(t, Tensor)))
        values = [aligned(t.samples, dims) if isinstance(t, PathTensor) else t for t in terms]
        return PathTensor(add(*values), degree, moving[0].resolution, path)
    resolution, values = meet(path, degree, *terms, dims=dims)
    return PathTensor(add(*values), degree, resolution, path)


@rule("add")
def _add(path: Path, a: Any, b: Any, *, alpha: float = 1, out: None = None) -> PathTensor:
    return total(path, lambda a, b: torch.add(a, b, alpha=alpha), a, b)


@rule("sub", "subtract")
def _sub(path: Path, a: Any, b: Any, *, alpha: float = 1, out: None = None) -> PathTensor:
    return total(path, lambda a, b: torch.sub(a, b, alpha=alpha), a, b)


@rule("rsub", "__rsub__")
def _rsub(path: Path, a: Any, b: Any, *, alpha: float = 1) -> PathTensor:
    return total(path, lambda a, b: torch.rsub(a, b, alpha=alpha), a, b)


@rule("mul", "multiply")
def _mul(path: Path, a: Any, b: Any, *, out: None = None) -> PathTensor:
    return product(path, torch.mul, a, b)


@rule("div", "divide", "true_divide")
def _div(path: Path, a: Any, b: Any, *, rounding_mode: str | None = None, out: None = None) -> PathTensor:
    if isinstance(b, PathTensor):
        raise path.refuse("div", "divides by a function of the input, and the quotient is not a polynomial")
    if rounding_mode is not None:
        raise path.refuse("div", "rounds, which is not polynomial")
    return product(path, torch.div, a, b)


@rule("pow", "__pow__")
def _pow(path: Path, base: Any, exponent: Any, *, out: None = None) -> PathTensor:
    if isinstance(exponent, PathTensor):
        raise path.refuse("pow", "has the input in its exponent")
    value = exponent.item() if isinstance(exponent, Tensor) and exponent.dim() == 0 else exponent
    if not isinstance(value, int | float) or value < 0 or not float(value).is_integer():
        raise path.refuse("pow", f"has the exponent {exponent}; only whole numbers ≥ 0 give a polynomial")
    n = int(value)
    resolution = path.grid.at(n * base.degree) if n else lobatto(0)
    samples = base.at(resolution) if n else base.samples[:1]
    return PathTensor(samples.pow(n), n * base.degree, resolution, path)


@rule("square")
def _square(path: Path, x: PathTensor) -> PathTensor:
    return product(path, torch.mul, x, x)


@rule("addcmul")
def _addcmul(path: Path, c: Any, a: Any, b: Any, *, value: float = 1) -> PathTensor:
    scaled = torch.mul(a, b)
    return total(path, lambda c, p: torch.add(c, p, alpha=value), c, scaled)


def _enter_negation() -> None:
    for name in ("neg", "negative", "clone"):
        apply = functions(name)[0]
        rule(name)(lambda path, x, _apply=apply, **options: like(x, _apply(x.samples, **options)))


_enter_negation()


@rule("positive")
def _positive(path: Path, x: PathTensor) -> PathTensor:
    return x


def _batch_norm(
    path: Path,
    x: PathTensor,
    mean: Tensor | None,
    variance: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *_: Any,
) -> PathTensor:
    """With fixed statistics it is affine: s x + (b − s μ), s = w / √(v + ε)."""
    if training or mean is None or variance is None:
        raise path.refuse(
            "batch_norm", "divides by statistics of the batch; call model.eval() for fixed ones"
        )
    if not isinstance(x, PathTensor) or path_tensors([mean, variance, weight, bias]):
        raise path.refuse("batch_norm", "is known to be affine in its first argument only")
    scale = (variance + eps).rsqrt() * (1 if weight is None else weight)
    shift = -mean * scale + (0 if bias is None else bias)
    channels = (-1, *[1] * (x.dim() - 2))
    return like(x, x.samples * scale.view(channels) + shift.view(channels))


RULES[F.batch_norm] = _batch_norm


@rule("dropout", "feature_dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d")
def _dropout(
    path: Path, x: PathTensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> PathTensor:
    if training and p > 0:
        raise path.refuse("dropout", "is random in training mode; call model.eval()")
    return x


in_place("add", "sub", "mul", "div", "pow", "square", "neg", "addcmul")
