"""Run somebody's model and leave it as it was found, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

_TABLES = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks", "_backward_hooks")


@contextmanager
def untouched(model: Any) -> Iterator[None]:
    """Inside, parameters ask for no gradients. Afterwards mode, requires_grad, .grad, buffers, hooks,
    cached attributes and the random state of torch are what they were.

    >>> layer = nn.Linear(2, 1)
    >>> with untouched(layer):
    ...     layer.weight.requires_grad, layer.eval().training
    (False, False)
    >>> layer.weight.requires_grad, layer.training
    (True, True)
    """
    everything = list(model.modules()) if isinstance(model, nn.Module) else []
    modules = [
        m for m in everything if not isinstance(m, torch.jit.ScriptModule)
    ]  # those keep their own books
    attributes = [(m, dict(m.__dict__), {t: dict(m.__dict__[t]) for t in _TABLES}) for m in modules]
    parameters = [(p, p.requires_grad, p.grad) for m in everything for p in m.parameters(recurse=False)]
    random_state = torch.get_rng_state()
    try:
        for parameter, _, _ in parameters:
            parameter.requires_grad_(False)
        with torch.inference_mode(False), torch.enable_grad():
            _lend_buffers(modules)
            yield
    finally:
        torch.set_rng_state(random_state)
        for module, own, tables in attributes:
            module.__dict__.clear()
            module.__dict__.update(own)
            for name, table in tables.items():
                own[name].clear()
                own[name].update(table)
        for parameter, required, grad in parameters:
            parameter.requires_grad_(required)
            parameter.grad = grad


def _lend_buffers(modules: list[nn.Module]) -> None:
    """Put a copy in the place of every buffer, to be written into at will."""
    copies: dict[int, Tensor] = {}
    for module in modules:
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = copies.setdefault(id(buffer), buffer.detach().clone())
