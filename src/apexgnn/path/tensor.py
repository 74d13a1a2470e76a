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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from apexgnn.errors import NotPolynomialError
from apexgnn.path.resolution import Grid, Resolution, interpolation

Function = Callable[..., Any]


@dataclass(slots=True, eq=False)
class Path:
    """One pass along the path: the points where values are wanted, and where in the model it is now."""

    grid: Grid
    where: Callable[[], str] = lambda: ""
    refusal: NotPolynomialError | None = None
    orders: dict[Any, Any] = field(default_factory=dict)

    def refuse(self, operation: str, reason: str) -> NotPolynomialError:
        """Write the refusal down, and return it to be raised."""
        error = NotPolynomialError(operation, module=self.where(), reason=reason)
        self.refusal = self.refusal or error
        return error


class PathTensor(Tensor):
    """A tensor of polynomials in τ: `samples` [K, *shape] at `resolution`, of degree at most `degree`."""

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
        self = torch.Tensor._make_wrapper_subclass(
            cls, samples.shape[1:], dtype=samples.dtype, device=torch.device("meta")
        )
        self.samples, self.degree, self.resolution, self.path = samples, degree, resolution, path
        self._sampled_at, self._constant, self._kin = {}, None, [weakref.ref(self)]
        return self

    def __init__(self, *args: Any) -> None:
        super().__init__()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        """Shape, degree and number of samples; never the numbers."""
        shape, count = tuple(self.samples.shape[1:]), len(self.samples)
        return f"PathTensor(shape={shape}, degree={self.degree}, samples={count})"

    def at(self, resolution: Resolution) -> Tensor:
        """The values at another resolution; a constant stays one sample, which broadcasts."""
        if self.degree == 0 or resolution == self.resolution:
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

    @classmethod
    def __torch_function__(
        cls,
        func: Function,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Look the function up among the rules; refuse what has none."""
        from apexgnn.path.rules import apply

        return apply(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Reached only by code that went around `__torch_function__`: there are no numbers here."""
        raise path_tensors((args, kwargs))[0].path.refuse(
            str(func), "was called from compiled or otherwise untraceable code"
        )


def path_tensors(value: Any) -> list[PathTensor]:
    """The PathTensors in nested lists, tuples and dicts."""
    if isinstance(value, PathTensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [tensor for item in value for tensor in path_tensors(item)]
