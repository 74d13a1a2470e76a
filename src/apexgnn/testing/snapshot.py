"""What an explainer must leave as it was, written down before and compared after."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data


def state_of(model: nn.Module, data: Data) -> list[Any]:
    """Everything about a model, its input and the random state that an explainer must leave alone."""
    modules = [
        (sorted(m.__dict__), {k: list(v) for k, v in m.__dict__.items() if isinstance(v, dict)}, _values(m))
        for m in model.modules()
    ]
    tensors = [t.detach().clone() for t in (*model.parameters(), *model.buffers())]
    grads = [(p.requires_grad, None if p.grad is None else p.grad.clone()) for p in model.parameters()]
    inputs = [data.x.clone(), data.edge_index.clone(), data.x.requires_grad]
    return [*modules, *tensors, *grads, *inputs, sorted(data.keys()), torch.get_rng_state()]


def _values(module: nn.Module) -> list[Any]:
    """What a module's own attributes are: its mode, and a mask that was None, for instance."""
    simple = (Tensor, bool, int, float, str, type(None))
    own = [(key, value) for key, value in sorted(module.__dict__.items()) if isinstance(value, simple)]
    return [(key, v.detach().clone() if isinstance(v, Tensor) else v) for key, v in own]


def same(a: Any, b: Any) -> bool:
    """Whether two snapshots are equal, entry by entry.

    >>> same([1, (torch.ones(2),)], [1, (torch.ones(2),)])
    True
    """
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and torch.equal(a, b)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)
