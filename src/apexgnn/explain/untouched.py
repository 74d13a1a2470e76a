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
    modules = [m for m in everything if not _scripted(m)]
    attributes = [(m, dict(m.__dict__), {t: dict(m.__dict__[t]) for t in _TABLES}) for m in modules]
    parameters = [(p, p.requires_grad, p.grad) for m in everything for p in m.parameters(recurse=False)]
    buffers = [(b, b.clone()) for m in modules for b in m._buffers.values() if b is not None]
    random_state = torch.get_rng_state()
    try:
        for parameter, _, _ in parameters:
            parameter.requires_grad_(False)
        with torch.inference_mode(False), torch.enable_grad():
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
        with torch.no_grad():
            for buffer, value in buffers:
                if not torch.equal(buffer, value):
                    buffer.copy_(value)


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
    with untouched(model):
        copies: dict[int, Tensor] = {}
        for module in model.modules() if isinstance(model, nn.Module) else ():
            for name, buffer in () if _scripted(module) else module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = copies.setdefault(id(buffer), buffer.detach().clone())
        yield


def _scripted(module: nn.Module) -> bool:
    """A compiled module keeps its books elsewhere, and its code does not write into them."""
    return isinstance(module, torch.jit.ScriptModule)
