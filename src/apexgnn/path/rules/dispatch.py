"""What happens when torch code meets a PathTensor: constants are computed, rules applied, the rest refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from apexgnn.path.resolution import lobatto
from apexgnn.path.rules.reasons import reason
from apexgnn.path.rules.registry import IN_PLACE, METADATA, RULES
from apexgnn.path.tensor import Function, Path, PathTensor, path_tensors


def apply(func: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of a torch function of which at least one argument is a PathTensor."""
    metadata = METADATA.get(func)
    if metadata is not None:
        return metadata(*args, **kwargs)
    tensors = path_tensors((args, kwargs))
    path = tensors[0].path
    constants = [t for t in tensors if t.degree == 0]
    if len(constants) == len(tensors):
        return _constant(func, args, kwargs, constants)
    name = _name(func)
    if not torch.is_grad_enabled():
        raise path.refuse(name, "runs where gradients are off (no_grad, or a custom autograd function)")
    if kwargs.get("out") is not None:
        raise path.refuse(name, "writes into the tensor given as out=")
    rule = RULES.get(func)
    if rule is None:
        raise path.refuse(name, reason(name))
    target = args[0] if func in IN_PLACE else None
    if target is not None and not isinstance(target, PathTensor):
        raise path.refuse(
            name, "writes a function of the input into a plain tensor; start from x.new_zeros(…)"
        )
    if constants:
        args, kwargs = _unwrapped(args), _unwrapped(kwargs)
    result = rule(path, *args, **kwargs)
    return target.become(result, name) if target is not None else result


def constant(value: Tensor, path: Path) -> PathTensor:
    """A tensor that does not depend on the input."""
    return PathTensor(value.unsqueeze(0), 0, lobatto(0), path)


def _constant(
    func: Function, args: Sequence[Any], kwargs: dict[str, Any], constants: list[PathTensor]
) -> Any:
    """Run the function on the constants themselves; what comes out is constant too."""
    path = constants[0].path
    result = func(*_unwrapped(args), **_unwrapped(kwargs))

    def wrap(value: Any) -> Any:
        if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
            return type(value)(map(wrap, value)) if type(value) in (list, tuple) else value
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        for known in constants:
            if value is known.constant:
                return known
        wrapped = constant(value, path)
        memory = value.untyped_storage().data_ptr()
        for known in constants:
            if known.samples.untyped_storage().data_ptr() == memory:
                wrapped.alias_of(known)
        return wrapped

    return wrap(result)


def _unwrapped(value: Any) -> Any:
    """The same arguments with constants as plain tensors."""
    if isinstance(value, PathTensor):
        return value.constant if value.degree == 0 else value
    if isinstance(value, dict):
        return {key: _unwrapped(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_unwrapped, value))
    return value


def _name(func: Function) -> str:
    """The name that a user knows a torch function by."""
    name = getattr(func, "__name__", str(func))
    if name in ("__get__", "__set__"):
        return "Tensor." + getattr(func.__self__, "__name__", "attribute")  # type: ignore[attr-defined]
    return name
