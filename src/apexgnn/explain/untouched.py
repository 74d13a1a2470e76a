"""Run somebody's model and leave it as it was found, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

_TABLES = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks", "_backward_hooks")


@contextmanager
def untouched(model: Any) -> Iterator[list[nn.Module]]:
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
    modules = [m for m in everything if not _scripted(m)]
    own = [(m, dict(m.__dict__)) for m in modules]
    tables = [(values[t], dict(values[t])) for _, values in own for t in _TABLES]
    parameters = [(p, p.requires_grad, p.grad) for m in everything for p in _own_parameters(m)]
    buffers = [(b, b.clone()) for m in modules for b in m._buffers.values() if b is not None]
    random_state = torch.get_rng_state()
    try:
        for parameter, required, _ in parameters:
            if required:
                parameter.requires_grad_(False)
        with torch.inference_mode(False), torch.enable_grad():
            yield modules
    finally:
        torch.set_rng_state(random_state)
        for now, before in (*((m.__dict__, values) for m, values in own), *tables):
            if now or before:
                now.clear()
                now.update(before)
        for parameter, required, grad in parameters:
            if parameter.requires_grad != required:
                parameter.requires_grad_(required)
            if parameter.grad is not grad:
                parameter.grad = grad
        with torch.no_grad():
            for buffer, value in buffers:
                if not torch.equal(buffer, value):
                    buffer.copy_(value)


def _own_parameters(module: nn.Module) -> list[nn.Parameter]:
    if _scripted(module):
        return list(module.parameters(recurse=False))
    return [p for p in module._parameters.values() if p is not None]


@contextmanager
def one_call(model: Any) -> Iterator[None]:
    """As `untouched`, with copies in the place of the buffers: what a call writes there is gone after it.

    >>> layer = nn.BatchNorm1d(2)
    >>> with one_call(layer):
    ...     _ = layer(torch.rand(3, 2))
    ...     layer.num_batches_tracked
    tensor(1)
    >>> layer.num_batches_tracked
    tensor(0)
    """
    with untouched(model) as modules:
        copies: dict[int, Tensor] = {}
        for module in modules:
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = copies.setdefault(id(buffer), buffer.detach().clone())
        yield


def _scripted(module: nn.Module) -> bool:
    """A compiled module keeps its books elsewhere, and its code does not write into them."""
    return isinstance(module, torch.jit.ScriptModule)
