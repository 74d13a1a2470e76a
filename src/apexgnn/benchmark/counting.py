"""What a computation asks of the machine: matrix products by their shapes, bytes read and written, operators called.

Every operator that torch dispatches is seen, forward and backward. An operator reads its inputs and writes its
outputs once; views and allocations cost nothing; of what is gathered only the gathered rows are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = {"mm": 0, "addmm": 1, "addmm_": 1}  # where the first factor stands
GATHERS = ("embedding_bag", "index_select", "gather", "index.Tensor")
FREE = ("empty", "detach", "resize", "set_")

Shape = tuple[int, int, int, bool, bool]  # rows, inner, columns, and which factors are transposed


class Counted(TorchDispatchMode):
    """Counts what runs inside it.

    >>> import torch
    >>> with Counted() as counted:
    ...     _ = torch.ones(2, 3) @ torch.ones(3, 4) + 1
    >>> counted.flops, counted.operators
    (48, 4)
    """

    def __init__(self) -> None:
        super().__init__()
        self.products: Counter[Shape] = Counter()
        self.moved = 0
        self.operators = 0

    @property
    def flops(self) -> int:
        """Additions and multiplications of the matrix products."""
        return sum(2 * m * k * n * times for (m, k, n, _, _), times in self.products.items())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count one operator; those made of others are taken apart."""
        kwargs = kwargs or {}
        name = str(func).removeprefix("aten.")
        if "embedding_bag" not in name:
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        result = func(*args, **kwargs)
        if func.is_view or name.startswith(FREE):
            return result
        self.operators += 1
        kind = name.split(".", maxsplit=1)[0]
        if kind in PRODUCTS:
            a, b = args[PRODUCTS[kind] : PRODUCTS[kind] + 2]
            self.products[(*a.shape, b.size(1), _turned(a), _turned(b))] += 1
        else:
            self.moved += _moved(name, args, kwargs, result)
        return result


def count(call: Callable[[], Any]) -> Counted:
    """What a call asks for."""
    with Counted() as counted:
        call()
    return counted


def _turned(matrix: Tensor) -> bool:
    return matrix.stride(0) == 1 and matrix.stride(1) != 1


def _moved(name: str, args: Any, kwargs: Any, result: Any) -> int:
    results = [t for t in (result if isinstance(result, tuple) else (result,)) if isinstance(t, Tensor)]
    written = sum(map(_bytes, results))
    inputs = [t for arg in (*args, *(v for k, v in kwargs.items() if k != "out")) for t in _tensors(arg)]
    if any(kind in name for kind in GATHERS):
        source, *rest = inputs
        rows = rest[0].numel() if "embedding_bag" in name else 0
        gathered = rows * source.size(1) * source.element_size() if rows else _bytes(results[0])
        return written + gathered + sum(map(_bytes, rest))
    return written + sum(map(_bytes, inputs))


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for t in value if isinstance(t, Tensor)] if isinstance(value, list | tuple) else []


def _bytes(tensor: Tensor) -> int:
    """What is really there: an expanded tensor is read once."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())
