"""Whether a model is a PolyGIN just as its class defines it, so that the kernel computes what the model would."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks

from apexgnn.nn.layers import PolyActivation, PolyGINConv, PolyScaleNorm
from apexgnn.nn.models import READOUTS, PolyGIN

_PARTS = {
    PolyGIN,
    PolyGINConv,
    PolyScaleNorm,
    PolyActivation,
    nn.ModuleList,
    nn.Sequential,
    nn.Linear,
    nn.Dropout,
}
_DIMENSIONS: dict[type, dict[str, tuple[int, ...]]] = {  # of the weights that a part must hold
    PolyGINConv: {"eps": (0,)},
    PolyScaleNorm: {"scale": (1,)},
    PolyActivation: {"theta": (0, 1)},
    nn.Linear: {"weight": (2,), "bias": (1,)},
}


def fusable(model: object) -> bool:
    """True for a PolyGIN without residuals, in eval mode, unaltered, without hooks, on the CPU, float32 or float64.

    >>> model = PolyGIN(3, 2, hidden_channels=4)
    >>> fusable(model), fusable(model.eval())
    (False, True)
    """
    if type(model) is not PolyGIN or not len(model.convs) or model.readout not in READOUTS:
        return False
    if hooks._global_forward_hooks or hooks._global_forward_pre_hooks:
        return False
    in_order = [type(layer) for layer in model.head] == [nn.Linear, PolyActivation, nn.Dropout, nn.Linear]
    if not in_order or not all(map(_in_order, model.convs)):
        return False
    first: Any = model.head[0]
    dtype = first.weight.dtype
    return dtype in (torch.float32, torch.float64) and all(
        _plain(part) and _held(part, dtype) for part in model.modules()
    )


def _in_order(conv: nn.Module) -> bool:
    parts = [type(part) for part in conv._modules.values()]
    return type(conv) is PolyGINConv and parts == [nn.Linear, PolyScaleNorm, PolyActivation, nn.Linear]


def _plain(module: nn.Module) -> bool:
    return (
        type(module) in _PARTS
        and not (module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)
        and not module._backward_pre_hooks
        and "forward" not in module.__dict__
        and not (isinstance(module, nn.Dropout) and module.training and module.p > 0)
        and not (isinstance(module, PolyGINConv) and module.residual)
    )


def _held(module: nn.Module, dtype: torch.dtype) -> bool:
    """Whether its weights are parameters or buffers, and of the class's own shape.

    A plain attribute in the place of a parameter, or a shape that broadcasts, works too, but not in the kernel.
    """
    held = module._parameters | module._buffers
    for name, dimensions in _DIMENSIONS.get(type(module), {}).items():
        weight = held.get(name)
        if weight is None or weight.dim() not in dimensions:
            return False
    if isinstance(module, nn.Linear) and module.bias.shape != module.weight.shape[:1]:
        return False
    if isinstance(module, PolyScaleNorm) and module.bias is not held.get("bias"):
        return False
    return all(_fits(weight, dtype) for weight in held.values())


def _fits(weight: Tensor | None, dtype: torch.dtype) -> bool:
    return weight is None or (
        type(weight) in (nn.Parameter, Tensor) and weight.dtype == dtype and weight.device.type == "cpu"
    )
