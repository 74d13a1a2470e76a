"""The linear maps between node rows: neighbourhood sums and readouts, with their transposes.

They act on planes [c, rows, channels], on each plane alike; `rows` picks which rows of the result are wanted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from apexgnn.aggregation import Bags
from apexgnn.explain.fused.workspace import Workspace

Rows = tuple[int, int]  # first, last + 1


def summed(bags: Bags, planes: Tensor) -> Tensor:
    """Every plane's bags of rows."""
    count, rows, channels = planes.shape
    return bags.repeated(count, rows).sum(planes.view(-1, channels)).view(count, -1, channels)


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """S h = (1 + ε) h_v + Σ w h_u, the node itself being among the rows that its bag sums.

    S may lead to fewer rows than it starts from: `along` has one bag for each row it leads to, `against` one for
    each row it starts from.
    """

    along: Bags
    against: Bags

    def __call__(self, planes: Tensor, rows: Rows | None = None) -> Tensor:
        """S on every plane."""
        return summed(self.along if rows is None else self.along.part(*rows), planes)

    def transpose(self, planes: Tensor, rows: Rows | None = None) -> Tensor:
        """Sᵀ on every plane."""
        return summed(self.against if rows is None else self.against.part(*rows), planes)


class Readout(Protocol):
    """A linear map from node rows to one row per score."""

    def __call__(self, planes: Tensor) -> Tensor:
        """The readout of every plane; of a part of the rows of a single graph, their part of it."""
        ...

    def transpose(self, planes: Tensor) -> Tensor:
        """Rows of scores to rows of nodes; one row for all nodes where they are all alike."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class OneGraph:
    """The sum over all rows, times `share`: 1 for the sum, 1/n for the mean."""

    share: float

    def __call__(self, planes: Tensor) -> Tensor:
        """[c, N, H] to [c, 1, H]."""
        return planes.sum(dim=1, keepdim=True).mul_(self.share)

    def transpose(self, planes: Tensor) -> Tensor:
        """[c, 1, H], the row of every node."""
        return planes * self.share


@dataclass(frozen=True, slots=True, eq=False)
class ManyGraphs:
    """The sum or mean over the nodes of each of several graphs, whose rows lie one after the other.

    Attributes:
        start: [G], the first row of each graph.
        owner: [N], the graph of each row.
        share: [G, 1], what each of its rows counts.
        space: where the rows of nodes are written.
    """

    start: Tensor
    owner: Tensor
    share: Tensor
    space: Workspace

    def __call__(self, planes: Tensor) -> Tensor:
        """[c, N, H] to [c, G, H]."""
        return summed(Bags(torch.arange(planes.size(1)), self.start), planes).mul_(self.share)

    def transpose(self, planes: Tensor) -> Tensor:
        """[c, G, H] to [c, N, H]."""
        count, graphs, channels = planes.shape
        shares = (planes * self.share).view(-1, channels)
        rows = (graphs * torch.arange(count).unsqueeze(1) + self.owner).view(-1)
        out = self.space.take("u", (rows.numel(), channels))
        return torch.index_select(shares, 0, rows, out=out).view(count, -1, channels)


@dataclass(frozen=True, slots=True, eq=False)
class EachNode:
    """The readout of a node task: every row is a score's."""

    def __call__(self, planes: Tensor) -> Tensor:
        """The rows as they are."""
        return planes

    def transpose(self, planes: Tensor) -> Tensor:
        """The rows as they are."""
        return planes
