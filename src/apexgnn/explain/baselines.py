"""Where the path starts: one baseline, or a distribution of them.

For baselines X′₁ … X′_D the attribution is the mean of the D exact ones. It is complete against the mean baseline
score, Σφ = f(X) − (1/D) Σ_d f(X′_d), and each integral keeps its certificate.

    None, a number, [F], [N, F]     that baseline
    several of these, in a list     each in turn
    "mean"                          every row is the mean row of its graph
    "permutation"                   the rows of each graph in random order, drawn several times: what a metric
                                    that masks by permutation compares with
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from apexgnn.errors import BaselineError


@dataclass(frozen=True, slots=True)
class Permutation:
    """The rows of each graph shuffled, `draws` times; the string "permutation" means the defaults.

    >>> Permutation(draws=20, seed=1)
    Permutation(draws=20, seed=1)
    """

    draws: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.draws, int) or self.draws < 1:
            raise BaselineError("baseline.draws", got=str(self.draws), expected="a whole number, at least 1")


def resolve_baselines(baseline: Any, x: Tensor, owner: Tensor) -> list[Tensor]:
    """The baselines [N, F] that a request stands for.

    >>> x, owner = torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1])
    >>> resolve_baselines("mean", x, owner)[0].tolist()
    [[2.0], [2.0], [5.0]]
    """
    if isinstance(baseline, str):
        if baseline not in ("mean", "permutation"):
            raise BaselineError(
                "baseline", got=repr(baseline), expected="'mean', 'permutation', numbers or tensors"
            )
        return [_mean_rows(x, owner)] if baseline == "mean" else _shuffled(x, owner, Permutation())
    if isinstance(baseline, Permutation):
        return _shuffled(x, owner, baseline)
    if isinstance(baseline, list | tuple):
        if not baseline:
            raise BaselineError("baseline", got="an empty list", expected="at least one baseline")
        return [single_baseline(one, x) for one in baseline]
    return [single_baseline(baseline, x)]


def single_baseline(baseline: Any, x: Tensor) -> Tensor:
    """Zero, a number, one row [F] for all nodes, or a full [N, F]."""
    if baseline is None:
        return torch.zeros_like(x)
    try:
        if torch.as_tensor(baseline).is_complex():
            raise TypeError("complex")
        value = torch.as_tensor(baseline, dtype=x.dtype, device=x.device).detach()
    except (TypeError, ValueError, RuntimeError):
        got = str(baseline.dtype) if isinstance(baseline, Tensor) else type(baseline).__name__
        raise BaselineError("baseline", got=got, expected="a real number or tensor") from None
    if value.shape not in (torch.Size(()), x.shape[1:], x.shape):
        expected = f"a number, [F] = [{x.size(1)}] or [N, F] = {list(x.shape)}"
        raise BaselineError("baseline", got=f"shape {list(value.shape)}", expected=expected)
    if not bool(torch.isfinite(value).all()):
        raise BaselineError("baseline", got="NaN or infinite values", expected="finite values")
    return value.expand_as(x).clone()


def _mean_rows(x: Tensor, owner: Tensor) -> Tensor:
    graphs = int(owner.max()) + 1
    total = x.new_zeros(graphs, x.size(1)).index_add(0, owner, x)
    return (total / torch.bincount(owner, minlength=graphs).to(x.dtype).unsqueeze(1))[owner]


def _shuffled(x: Tensor, owner: Tensor, draws: Permutation) -> list[Tensor]:
    """Sorting by owner and a random key puts a shuffled graph where the graph was."""
    generator = torch.Generator().manual_seed(draws.seed)
    home = owner.argsort(stable=True)
    baselines = []
    for _ in range(draws.draws):
        key = torch.rand(len(owner), generator=generator).to(owner.device).argsort()
        order = key[owner[key].argsort(stable=True)]
        baselines.append(torch.empty_like(x).index_copy(0, home, x[order]))
    return baselines
