"""Bootstrap intervals over graphs: the graphs are the sample, whatever was measured on each.

From G values draw G with replacement, B times; the interval is the central `level` of the B means (the
percentile bootstrap, Efron 1979). Columns are resampled together.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """A mean with its bootstrap interval; tensors of the values' trailing shape."""

    mean: Tensor
    low: Tensor
    high: Tensor
    level: float
    graphs: int

    def __str__(self) -> str:
        if self.mean.dim():
            return f"{self.mean.numel()} means over {self.graphs} graphs, {self.level:.0%} intervals"
        return f"{float(self.mean):.4f} [{float(self.low):.4f}, {float(self.high):.4f}]"


def bootstrap(values: Tensor, *, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> Interval:
    """The mean of [G, …] values over graphs, with its interval.

    NaN marks a graph without a value: it is left out.

    >>> print(bootstrap(torch.tensor([1.0, 1.0, 1.0])))
    1.0000 [1.0000, 1.0000]
    """
    if not 0 < level < 1:
        raise InputError("level", got=repr(level), expected="a number between 0 and 1")
    values = values.double()
    values = values[~values.isnan().flatten(1).any(1) if values.dim() > 1 else ~values.isnan()]
    if not len(values):
        raise InputError("values", got="no graph with a value", expected="at least one")
    generator = torch.Generator().manual_seed(seed)
    draws = torch.randint(len(values), (resamples, len(values)), generator=generator)
    means = torch.stack([values[draw].mean(0) for draw in draws])
    tail = (1 - level) / 2
    low, high = torch.quantile(means, torch.tensor([tail, 1 - tail], dtype=means.dtype), dim=0)
    return Interval(values.mean(0), low, high, level, len(values))
