"""The linear maps between node rows: neighbourhood sums and the readout, with their transposes.

Both act on planes [c, rows, channels], on each plane alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from apexgnn.aggregation import Bags
from apexgnn.explain.fused.workspace import Workspace


class Operator(Protocol):
    """A linear map S from rows to rows."""

    def __call__(self, planes: Tensor) -> Tensor:
        """S on every plane."""
        ...

    def transpose(self, planes: Tensor) -> Tensor:
        """Sᵀ on every plane."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """(1 + ε) h_v + Σ w h_u, with the node itself among the rows that a bag sums."""

    along: Bags
    against: Bags

    def __call__(self, planes: Tensor) -> Tensor:
        """S on every plane."""
        return _sum(self.along, planes)

    def transpose(self, planes: Tensor) -> Tensor:
        """Sᵀ on every plane."""
        return _sum(self.against, planes)


def _sum(bags: Bags, planes: Tensor) -> Tensor:
    count, rows, channels = planes.shape
    return bags.repeated(count, rows).sum(planes.view(-1, channels)).view(count, -1, channels)


@dataclass(frozen=True, slots=True, eq=False)
class Readout:
    """Sum or mean over the nodes of each of several graphs, whose rows lie one after the other.

    Attributes:
        start: [G], the first row of each graph.
        owner: [N], the graph of each row.
        share: [G, 1], what each row counts: 1/n for the mean; None for the sum.
        space: where the rows of nodes are written.
    """

    start: Tensor
    owner: Tensor
    share: Tensor | None
    space: Workspace

    def __call__(self, planes: Tensor) -> Tensor:
        """Rows of nodes to rows of graphs."""
        if len(self.start) == 1:
            total = planes.sum(dim=1, keepdim=True)
        else:
            total = _sum(Bags(torch.arange(planes.size(1)), self.start), planes)
        return total if self.share is None else total.mul_(self.share)

    def transpose(self, planes: Tensor) -> Tensor:
        """Rows of graphs to rows of nodes; for a single graph they are all one row, and not repeated."""
        shares = planes if self.share is None else planes * self.share
        if len(self.start) == 1:
            return shares
        count, graphs, channels = planes.shape
        rows = (graphs * torch.arange(count).unsqueeze(1) + self.owner).view(-1)
        out = self.space.take("u", (rows.numel(), channels))
        torch.index_select(shares.reshape(-1, channels), 0, rows, out=out)
        return out.view(count, -1, channels)


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    """The readout of a node task: none."""

    def __call__(self, planes: Tensor) -> Tensor:
        """The rows as they are."""
        return planes

    def transpose(self, planes: Tensor) -> Tensor:
        """The rows as they are."""
        return planes
