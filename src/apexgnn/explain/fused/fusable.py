"""Whether a model is a PolyGIN just as its class defines it, so that the kernel computes what the model would."""

from __future__ import annotations

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


def fusable(model: object) -> bool:
    """True for a PolyGIN without residuals, in eval mode, unaltered, without hooks, on the CPU, float32 or float64.

    >>> model = PolyGIN(3, 2, hidden_channels=4)
    >>> fusable(model), fusable(model.eval())
    (False, True)
    """
    if type(model) is not PolyGIN or not len(model.convs) or hooks._global_forward_hooks:
        return False
    dtype = next(model.parameters()).dtype
    if dtype not in (torch.float32, torch.float64) or hooks._global_forward_pre_hooks:
        return False
    return (
        [type(layer) for layer in model.head] == [nn.Linear, PolyActivation, nn.Dropout, nn.Linear]
        and all(_in_order(conv) for conv in model.convs)
        and model.readout in READOUTS
        and all(map(_plain, model.modules()))
        and all(
            _fits(weight, dtype)
            for m in model.modules()
            for weight in (*m._parameters.values(), *m._buffers.values())
        )
    )


def _in_order(conv: nn.Module) -> bool:
    parts = [type(part) for part in conv.children()]
    return parts == [nn.Linear, PolyScaleNorm, PolyActivation, nn.Linear]


def _plain(module: nn.Module) -> bool:
    return (
        type(module) in _PARTS
        and not (module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)
        and not module._backward_pre_hooks
        and "forward" not in module.__dict__
        and not (isinstance(module, nn.Dropout) and module.training and module.p > 0)
        and not (isinstance(module, nn.Linear) and module.bias is None)
        and not (isinstance(module, PolyGINConv) and module.residual)
    )


def _fits(weight: Tensor | None, dtype: torch.dtype) -> bool:
    return weight is None or (
        type(weight) in (nn.Parameter, Tensor) and weight.dtype == dtype and weight.device.type == "cpu"
    )
