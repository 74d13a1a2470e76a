"""Matrix products and einsum: sums of products, and linear where one side is constant."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from apexgnn.path.path import Path
from apexgnn.path.rules.algebra import product, total
from apexgnn.path.rules.registry import degree_of, in_place, like, rule
from apexgnn.path.tensor import RULES, PathTensor, path_tensors


@rule("matmul", "mm", "bmm", "mv", "dot", "__matmul__")
def _matmul(path: Path, a: Any, b: Any) -> PathTensor:
    """One dimension is lent to vectors, so that what is left is a batch of matrix products."""
    if isinstance(a, Tensor) and not isinstance(a, PathTensor) and a.layout != torch.strided:
        return sparse_times(path, a, b)
    if isinstance(b, Tensor) and not isinstance(b, PathTensor) and b.layout != torch.strided:
        raise path.refuse("matmul", "multiplies by a sparse matrix from the right; write it from the left")
    row, column = a.dim() == 1, b.dim() == 1
    result = product(path, torch.matmul, a.unsqueeze(0) if row else a, b.unsqueeze(1) if column else b)
    if column:
        result = like(result, result.samples.squeeze(-1))
    if row:
        result = like(result, result.samples.squeeze(-1 if column else -2))
    return result


@rule("__rmatmul__")
def _rmatmul(path: Path, b: Any, a: Any) -> PathTensor:
    return _matmul(path, a, b)


def sparse_times(path: Path, matrix: Tensor, x: PathTensor) -> PathTensor:
    """A sparse constant times [n] or [n, C]: the samples stand side by side as columns of one product."""
    if x.dim() > 2:
        raise path.refuse("matmul", "multiplies a sparse matrix by more than two dimensions")
    columns = x.samples.movedim(0, -1)
    flat = matrix @ columns.reshape(columns.shape[0], -1)
    return like(x, flat.view(-1, *columns.shape[1:]).movedim(-1, 0))


def _sparse_mm(path: Path, matrix: Any, x: Any, reduce: str = "sum") -> PathTensor:
    if isinstance(matrix, PathTensor) or matrix.layout == torch.strided or reduce != "sum":
        raise path.refuse("sparse.mm", "is known for a constant sparse matrix from the left, and sums")
    return sparse_times(path, matrix, x)


RULES[torch.sparse.mm] = _sparse_mm


@rule("linear")
def _linear(path: Path, x: Any, weight: Any, bias: Any = None) -> PathTensor:
    if path_tensors([weight, bias]):
        result: Any = torch.matmul(x, weight.t())
        return result if bias is None else total(path, torch.add, result, bias)
    return like(x, F.linear(x.samples, weight, bias))


@rule("addmm", "baddbmm", "addmv")
def _addmm(path: Path, c: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1) -> PathTensor:
    return total(path, lambda c, p: torch.add(beta * c, p, alpha=alpha), c, torch.matmul(a, b))


@rule("einsum")
def _einsum(path: Path, equation: str, *operands: Any) -> PathTensor:
    """Give every moving operand, and the result, one more index: the sample."""
    factors = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    left, _, right = equation.replace(" ", "").partition("->")
    if "->" not in equation:
        right = "".join(sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1))
        right = ("..." if "..." in left else "") + right
    sample = next(c for c in "zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA" if c not in equation)
    moving = [isinstance(f, PathTensor) for f in factors]
    inputs = [sample + term if m else term for term, m in zip(left.split(","), moving, strict=True)]
    degree = sum(map(degree_of, factors))
    resolution = path.grid.at(degree)
    values = [f.at(resolution) if isinstance(f, PathTensor) else f for f in factors]
    return PathTensor(
        torch.einsum(",".join(inputs) + "->" + sample + right, *values), degree, resolution, path
    )


@rule("bilinear")
def _bilinear(path: Path, a: Any, b: Any, weight: Any, bias: Any = None) -> PathTensor:
    result = _einsum(path, "...i,oij,...j->...o", a, weight, b)
    return result if bias is None else total(path, torch.add, result, bias)


in_place("addmm")
