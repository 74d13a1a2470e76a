"""A batch cut into pieces of whole graphs, each small enough that its planes stay in cache.

The matrix products of PolyGIN are cheap enough for memory traffic to decide: one product with a 300 × 300 matrix
takes 0.9 µs per row on a machine whose main memory needs 0.1 to 0.3 µs to move that row once, and the planes of a row
are read and written some eighty times. In cache this costs a fraction of the products; out of it, several times
as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.aggregation import Adjacency, Bags
from apexgnn.errors import MemoryBudgetError
from apexgnn.explain.fused.fold import Folded
from apexgnn.explain.fused.operators import Neighbours, Operator, Readout
from apexgnn.explain.fused.workspace import Workspace

ROWS_IN_CACHE = 480


@dataclass(frozen=True, slots=True, eq=False)
class Wiring:
    """The sums of every layer over the whole batch, and what the readout needs.

    Attributes:
        layers: one operator per layer; layers with the same ε share theirs.
        ptr: [G + 1], where the rows of each graph begin.
        mean: whether the readout is the mean, not the sum.
    """

    layers: tuple[Neighbours, ...]
    ptr: Tensor
    mean: bool
    dtype: torch.dtype

    def piece(self, first: int, last: int, space: Workspace) -> tuple[Operator, ...]:
        """S₁ … S_L for graphs `first` … `last` − 1, in rows counted from the first of them."""
        nodes = int(self.ptr[-1])
        low, high = self.ptr[[first, last]].tolist()
        layers = self.layers
        if high - low < nodes:
            cut = {
                id(s): Neighbours(*(_cut(bags, low, high) for bags in (s.along, s.against))) for s in layers
            }
            layers = tuple(cut[id(s)] for s in layers)
        ptr = self.ptr[first : last + 1]
        sizes = ptr.diff()
        share = sizes.to(self.dtype).reciprocal_().unsqueeze(1) if self.mean else None
        return (*layers, Readout(ptr[:-1] - low, torch.repeat_interleave(sizes), share, space))


def sorted_once(
    edge_index: Tensor, nodes: int, *, edge_weight: Tensor | None, eps: Sequence[float], dtype: torch.dtype
) -> tuple[Neighbours, ...]:
    """The sum of every layer: the edges, with a loop for the node's own share, sorted once for all."""
    loops = torch.arange(nodes).expand(2, -1)
    adjacency = Adjacency(torch.cat([edge_index, loops], dim=1), nodes)
    sums: dict[float, Neighbours] = {}
    for value in set(eps):
        weight = None
        if edge_weight is not None or value != 0:
            edges = torch.ones(edge_index.size(1), dtype=dtype) if edge_weight is None else edge_weight
            weight = torch.cat([edges, torch.full((nodes,), 1 + value, dtype=dtype)])
        sums[value] = Neighbours(adjacency.bags(weight), adjacency.bags(weight, reverse=True))
    return tuple(sums[value] for value in eps)


def _cut(bags: Bags, low: int, high: int) -> Bags:
    """The bags of rows low … high − 1, which hold those rows only."""
    start = bags.start[low:high]
    first = int(start[0])
    last = int(bags.start[high]) if high < len(bags.start) else len(bags.index)
    weight = None if bags.weight is None else bags.weight[first:last]
    return Bags(bags.index[first:last] - low, start - first, weight)


def bytes_per_row(folded: Folded, *, zero: bool) -> int:
    """How much memory one node row takes in the kernel, at most."""
    planes, widest = 0, 0
    for k, stage in enumerate(folded.stages[:-1]):
        above = folded.stages[k + 1].thin if zero else 0
        planes += 2**k + 1
        widest = max(widest, 2**k + 1 + 2 * (2 ** (k + 1) + 1 - above))
    width, size = folded.weight.size(1), folded.weight.element_size()
    narrow = sum(len(stage.linear) + len(stage.constant) for stage in folded.stages)
    return size * (width * (planes + widest) + 3 * narrow)


def pieces(sizes: Sequence[int], *, row_bytes: int, memory: int) -> Iterator[tuple[int, int]]:
    """Runs first … last − 1 of graphs of about `ROWS_IN_CACHE` rows, none beyond the memory allowed.

    >>> list(pieces([100, 100, 100, 100, 900], row_bytes=1000, memory=10**6))
    [(0, 4), (4, 5)]
    """
    first = rows = 0
    for last, size in enumerate(sizes):
        if size * row_bytes > memory:
            raise MemoryBudgetError(
                f"graph {last} of {size} nodes needs about {size * row_bytes / 2**20:.0f} MiB, "
                f"more than the {memory / 2**20:.0f} MiB allowed. To fix: allow more memory"
            )
        if last > first and rows + size > ROWS_IN_CACHE:
            yield first, last
            first, rows = last, 0
        rows += size
    yield first, len(sizes)
