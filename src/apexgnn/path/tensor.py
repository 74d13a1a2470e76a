"""A tensor whose entries are polynomials in τ, and which flows through ordinary torch code.

Along the straight path γ(τ) = X′ + τ(X − X′) every activation of a polynomial network is a polynomial in τ.
A `PathTensor` is such an activation: a degree d, and the values at the sample points of its resolution,

    samples[k] = p(τ_k),   shape [K, *shape].

Operations that are linear act sample by sample and keep the degree. A product first brings its factors to
the resolution of the product's degree, and then multiplies sample by sample. Each such fact is a *rule*, entered
under the torch function that it speaks of (see `apexgnn.path.rules`). A function without a rule is refused:

- the wrapper has a shape but no storage, so code that slips past the rules finds no numbers to compute with;
- a refusal is also written down on the `Path`, so that code which swallows the exception does not hide it.

A tensor of degree 0 does not depend on the input at all. It behaves like the constant that it is.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from apexgnn.path.path import Path
from apexgnn.path.reasons import reason
from apexgnn.path.resolution import Resolution, interpolation, lobatto

Function = Callable[..., Any]
RULES: dict[Function, Function] = {}
METADATA: dict[Function, Function] = {}
IN_PLACE: set[Function] = set()


class PathTensor(Tensor):
    """Polynomials in τ: `samples` [K, *shape] at `resolution`, of degree at most `degree`.

    >>> from apexgnn.path import Grid
    >>> x = PathTensor(torch.ones(2, 3, 5), 1, lobatto(1), Path(Grid(lobatto(4))))
    >>> x * x + 1
    PathTensor(shape=(3, 5), degree=2, samples=3)
    """

    samples: Tensor
    degree: int
    resolution: Resolution
    path: Path
    _sampled_at: dict[Resolution, Tensor]
    _constant: Tensor | None
    _kin: list[weakref.ref[PathTensor]]

    @staticmethod
    def __new__(cls, samples: Tensor, degree: int, resolution: Resolution, path: Path) -> PathTensor:
        """Wrap samples; the wrapper itself has no storage."""
        self = Tensor._make_wrapper_subclass(cls, samples.shape[1:], dtype=samples.dtype, device=_NOWHERE)
        self.samples, self.degree, self.resolution, self.path = samples, degree, resolution, path
        self._sampled_at, self._constant, self._kin = {}, None, [weakref.ref(self)]
        path.entries[degree] += samples.shape[1:].numel()
        return self

    def __init__(self, *args: Any) -> None:
        pass

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        """Shape, degree and number of samples; never the numbers."""
        shape, count = tuple(self.samples.shape[1:]), len(self.samples)
        return f"PathTensor(shape={shape}, degree={self.degree}, samples={count})"

    def at(self, resolution: Resolution) -> Tensor:
        """The values at another resolution; a constant stays one sample, which broadcasts."""
        if self.degree == 0 or resolution is self.resolution or resolution == self.resolution:
            return self.samples
        if resolution not in self._sampled_at:
            matrix = interpolation(self.resolution, resolution, self.samples.dtype, self.samples.device)
            flat = self.samples.reshape(len(self.samples), -1)
            self._sampled_at[resolution] = (matrix @ flat).view(len(resolution), *self.samples.shape[1:])
        return self._sampled_at[resolution]

    @property
    def constant(self) -> Tensor:
        """The value of a tensor of degree 0, always the same object."""
        if self._constant is None:
            self._constant = self.samples[0]
        return self._constant

    def alias_of(self, base: PathTensor) -> PathTensor:
        """Record that torch would have made this a view of `base`."""
        base._kin.append(weakref.ref(self))
        self._kin = base._kin
        return self

    def become(self, result: PathTensor, operation: str) -> PathTensor:
        """What an in-place operation does: take over the result, unless another tensor would have changed too."""
        if any(kin() is not None and kin() is not self for kin in self._kin):
            raise self.path.refuse(
                operation, "writes in place into a tensor that shares memory with another one"
            )
        if result.samples.shape[1:] != self.samples.shape[1:] or result.samples.dtype != self.samples.dtype:
            raise self.path.refuse(operation, "changes shape or dtype in place")
        self.samples, self.degree, self.resolution = result.samples, result.degree, result.resolution
        self._sampled_at, self._constant = {}, None
        return self

    # What models ask most often, answered without a detour. Everything else goes through METADATA.
    shape = property(lambda self: self.samples.shape[1:])
    ndim = property(lambda self: self.samples.dim() - 1)
    dtype = property(lambda self: self.samples.dtype)
    device = property(lambda self: self.samples.device)

    def dim(self) -> int:
        """How many dimensions."""
        return self.samples.dim() - 1

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one entry of it."""
        shape = self.samples.shape[1:]
        return shape if dim is None else shape[dim]

    @classmethod
    def __torch_function__(
        cls,
        func: Function,
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Answer questions about shape, compute constants, apply rules, refuse the rest."""
        metadata = METADATA.get(func)
        return metadata(*args, **kwargs or {}) if metadata is not None else _apply(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls,
        func: Any,
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Reached only by code that went around `__torch_function__`: there are no numbers here."""
        why = "was called from compiled or otherwise untraceable code"
        raise path_tensors((args, kwargs))[0].path.refuse(str(func), why)


_NOWHERE = torch.device("meta")
_NESTED = (list, tuple, dict)


def _apply(func: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of a torch function of which at least one argument is a PathTensor."""
    tensors = path_tensors((*args, *kwargs.values()))
    path = tensors[0].path
    if any(t.path is not path for t in tensors):
        why = "meets a tensor that the model kept from an earlier call"
        refusals = [t.path.refuse(name_of(func), why) for t in tensors]
        raise refusals[0]
    constants = [t for t in tensors if t.degree == 0]
    target = args[0] if func in IN_PLACE else None
    if constants:
        known, args, kwargs = [*args, *kwargs.values()], _unwrapped(args), _unwrapped(kwargs)
        if len(constants) == len(tensors):  # then what comes out is constant too
            return _wrapped(func(*args, **kwargs), known, constants)
    rule = RULES.get(func)
    if rule is None:
        raise path.refuse(name_of(func), reason(name_of(func)))
    if not torch.is_grad_enabled():
        why = "runs where gradients are off (no_grad, or a custom autograd function)"
        raise path.refuse(name_of(func), why)
    if kwargs.get("out") is not None:
        raise path.refuse(name_of(func), "writes into the tensor given as out=")
    if target is not None and not isinstance(target, PathTensor):
        why = "writes a function of the input into a plain tensor; start from x.new_zeros(…)"
        raise path.refuse(name_of(func), why)
    if "input" in kwargs:
        args, kwargs = (kwargs["input"], *args), {key: kwargs[key] for key in kwargs if key != "input"}
    try:
        result = rule(path, *args, **kwargs)
    except TypeError as error:
        raise path.refuse(name_of(func), f"is called in a way that has no rule ({error})") from error
    for made in path_tensors((result,)):
        if made.dtype not in (torch.float32, torch.float64):
            raise path.refuse(name_of(func), f"gives {made.dtype}; only float32 and float64 can be followed")
    result = result if target is None else target.become(result, name_of(func))
    return _wrapped(result, known, constants) if constants else result


def _wrapped(value: Any, args: Sequence[Any], constants: list[PathTensor]) -> Any:
    """The plain tensors in a result as constants; what shares the memory of a plain argument stays plain."""
    if type(value) in (list, tuple):
        return type(value)(_wrapped(item, args, constants) for item in value)
    if isinstance(value, PathTensor) or not isinstance(value, Tensor) or not constants:
        return value
    if not value.is_floating_point() or value.layout != torch.strided:
        return value
    for known in constants:
        if value is known.constant:
            return known
    sharing = [one for one in path_tensors(args, Tensor) if _memory(one) == _memory(value)]
    if not all(isinstance(one, PathTensor) for one in sharing):
        return value
    wrapped = constant(value, constants[0].path)
    for one in sharing:
        wrapped.alias_of(one)
    return wrapped


def _memory(tensor: Tensor) -> int | None:
    numbers = tensor.samples if isinstance(tensor, PathTensor) else tensor
    return numbers.untyped_storage().data_ptr() if numbers.layout == torch.strided else None


def _unwrapped(value: Any) -> Any:
    """The same arguments with constants as plain tensors."""
    if isinstance(value, PathTensor):
        return value.constant if value.degree == 0 else value
    if isinstance(value, dict):
        return {key: _unwrapped(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_unwrapped, value))
    return value


def constant(value: Tensor, path: Path) -> PathTensor:
    """A tensor that does not depend on the input."""
    made = PathTensor(value.unsqueeze(0), 0, lobatto(0), path)
    made._constant = value
    return made


def path_tensors(value: Any, kind: type = PathTensor) -> list[Any]:
    """The PathTensors (or the tensors of another kind) in nested lists, tuples and dicts."""
    if isinstance(value, kind):
        return [value]
    found: list[Any] = []
    if isinstance(value, _NESTED):
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, kind):
                found.append(item)
            elif isinstance(item, _NESTED):
                found += path_tensors(item, kind)
    return found


def name_of(func: Function) -> str:
    """The name that a user knows a torch function by."""
    name = getattr(func, "__name__", type(func).__name__)
    if name in ("__get__", "__set__"):
        return "Tensor." + getattr(func.__self__, "__name__", "attribute")  # type: ignore[attr-defined]
    return name
