"""Questions about a tensor that its values do not enter: shape, dtype, device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from apexgnn.path.rules.registry import functions
from apexgnn.path.tensor import METADATA, PathTensor, constant


def _of_samples(name: str) -> Callable[[PathTensor], Any]:
    return lambda x: getattr(x.samples, name)


def _called_on_samples(name: str) -> Callable[..., Any]:
    return lambda x, *args: getattr(x.samples, name)(*args)


def _shaped_as(name: str) -> Callable[..., Any]:
    """`a.expand_as(b)`, where b only gives its shape."""
    method = name.removesuffix("_as")
    return lambda x, other: getattr(x, method)(other.shape)


def _new(name: str) -> Callable[..., PathTensor]:
    """`x.new_zeros(…)`, `torch.zeros_like(x)`: fresh constants, which a model may then scatter into."""

    def build(x: PathTensor, *args: Any, **kwargs: Any) -> Any:
        fresh = getattr(x.samples if name.startswith("new") else x.samples[0], name, None)
        made = fresh(*args, **kwargs) if fresh else getattr(torch, name)(x.samples[0], *args, **kwargs)
        made = x.path.blank(made) if "zeros" in name else made
        return constant(made, x.path) if made.is_floating_point() else made

    return build


def _enter() -> None:
    flags = "itemsize layout is_cuda is_cpu is_mps is_xpu is_meta is_sparse is_sparse_csr"
    flags += " is_quantized is_mkldnn is_nested"
    answers = {flag: _of_samples(flag) for flag in flags.split()}
    answers["requires_grad"] = lambda x: False  # as where the score itself is computed
    for flag, answer in answers.items():
        METADATA[getattr(Tensor, flag).__get__] = answer

    methods: dict[str, Callable[..., Any]] = {"ndimension": PathTensor.dim, "__len__": lambda x: x.shape[0]}
    methods |= dict.fromkeys(("numel", "nelement"), lambda x: x.shape.numel())
    methods |= {
        n: _called_on_samples(n) for n in ("is_floating_point", "is_complex", "element_size", "get_device")
    }
    methods["is_contiguous"] = lambda x, **_: True
    methods |= {n: _shaped_as(n) for n in ("expand_as", "view_as", "reshape_as")}
    constants = "new_zeros new_ones new_full new_tensor zeros_like ones_like full_like"
    methods |= {n: _new(n) for n in constants.split()}
    for name, body in methods.items():
        METADATA.update(dict.fromkeys(functions(name), body))


_enter()
