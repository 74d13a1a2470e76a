"""Memory that is used again: a buffer per name, grown when a larger one is asked for.

Fresh memory costs a page fault per 4 KB, which for planes of node rows takes longer than the arithmetic on them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import torch
from torch import Tensor

KEPT = 32 << 20  # bytes that a thread keeps between calls

_LOCAL = threading.local()


class Workspace:
    """Named buffers of one dtype.

    >>> space = Workspace(torch.float64)
    >>> first = space.take("z", (2, 3))
    >>> space.take("z", (3, 2)).data_ptr() == first.data_ptr()
    True
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._flat: dict[str, Tensor] = {}

    @property
    def nbytes(self) -> int:
        """What is held now."""
        return sum(flat.nbytes for flat in self._flat.values())

    def take(self, name: str, shape: Sequence[int]) -> Tensor:
        """The buffer of this name in this shape; what it held before is overwritten or lost."""
        size = math.prod(shape)
        flat = self._flat.get(name)
        if flat is None or flat.numel() < size:
            flat = self._flat[name] = torch.empty(size, dtype=self.dtype)
        return flat[:size].view(tuple(shape))

    @classmethod
    def of_thread(cls, dtype: torch.dtype) -> Workspace:
        """The workspace that this thread used last, if it is not too large to be kept."""
        space = getattr(_LOCAL, "space", None)
        if space is None or space.dtype != dtype or space.nbytes > KEPT:
            space = _LOCAL.space = cls(dtype)
        return space
