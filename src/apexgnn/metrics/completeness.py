"""Completeness: do the shares add up?   error = |Σφ − (f(X) − f(X′))|

The sum is formed here, in double precision, from the shares themselves and not from the residual that the
attribution carries. No relative error is formed where f(X) = f(X′).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.attribution import Attribution
from apexgnn.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Completeness:
    """The errors of single graphs.

    Attributes:
        absolute: [G], |Σφ − (f(X) − f(X′))|.
        relative: [G], the same over |f(X) − f(X′)|; NaN where that is zero.
    """

    absolute: Tensor
    relative: Tensor


def completeness(attributions: Sequence[Attribution]) -> Completeness:
    """Completeness errors of attributions of single graphs (or nodes).

    >>> one = torch.ones(1)
    >>> share = Attribution(None, torch.tensor([0.25, 0.5]), one, one, 0 * one, -0.25 * one, 1, False, None)
    >>> float(completeness([share]).absolute)
    0.25
    """
    rows = []
    for position, attribution in enumerate(attributions):
        if attribution.score.numel() != 1:
            got = f"{attribution.score.numel()} graphs in one attribution"
            raise InputError(f"attributions[{position}]", got=got, expected="one graph each")
        shares = attribution.features if attribution.features is not None else attribution.nodes
        change = attribution.score.double().flatten()[0] - attribution.baseline_score.double().flatten()[0]
        error = (shares.double().sum() - change).abs()
        rows.append((error, error / change.abs() if change != 0 else error.new_tensor(float("nan"))))
    absolute, relative = (torch.stack(column) for column in zip(*rows, strict=True))
    return Completeness(absolute, relative)
