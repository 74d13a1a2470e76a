"""Follow a model through a pass: which submodule is running, and what each did to the degree."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from apexgnn.attribution import TraceRow
from apexgnn.path.tensor import path_tensors


class Follower:
    """The stack of running submodules, and a row for each that has finished, in the order they started."""

    def __init__(self, model: Any) -> None:
        named = model.named_modules() if isinstance(model, nn.Module) else ()
        self.names = {id(module): name for name, module in named}
        self.thread = threading.get_ident()
        self.stack: list[tuple[str, int]] = []
        self.rows: list[tuple[str, str, int, int] | None] = []

    def where(self) -> str:
        """The path of the innermost running submodule."""
        return self.stack[-1][0] if self.stack else ""

    def enters(self, module: nn.Module, args: Any) -> None:
        """A submodule starts."""
        name = self.names.get(id(module))
        if name is not None and threading.get_ident() == self.thread:
            self.stack.append((name, len(self.rows)))
            self.rows.append(None)

    def leaves(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """A submodule ends, and with it any inside that an exception has ended."""
        if id(module) not in self.names or threading.get_ident() != self.thread:
            return
        name, row = self.stack.pop()
        while name != self.names[id(module)]:
            name, row = self.stack.pop()
        came, went = path_tensors((*args, *kwargs.values())), path_tensors(output)
        if came and went:
            degrees = max(t.degree for t in came), max(t.degree for t in went)
            self.rows[row] = (name, type(module).__name__, *degrees)

    @property
    def trace(self) -> tuple[TraceRow, ...]:
        """The finished rows."""
        return tuple(TraceRow(*row) for row in self.rows if row is not None)


@contextmanager
def followed(model: Any) -> Iterator[Follower]:
    """Listen to every module call while inside; the model itself is not changed."""
    follower = Follower(model)
    handles = [
        register_module_forward_pre_hook(follower.enters),
        register_module_forward_hook(follower.leaves, with_kwargs=True),
    ]
    try:
        yield follower
    finally:
        for handle in handles:
            handle.remove()
