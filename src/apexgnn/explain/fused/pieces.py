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
from apexgnn.explain.fused.kernel import Operator

ROWS_IN_CACHE = 480


@dataclass(frozen=True, slots=True, eq=False)
class Wiring:
    """The sums (1 + ε)h_v + Σ w h_u of every layer over the whole batch, and the readout.

    Attributes:
        layers: one operator per layer; layers with the same ε share theirs.
        ptr: [G + 1], where the rows of each graph begin.
        share: [N], what a node counts in the readout.
    """

    layers: tuple[Operator, ...]
    ptr: Tensor
    share: Tensor | None

    @classmethod
    def build(
        cls,
        edge_index: Tensor,
        ptr: Tensor,
        *,
        edge_weight: Tensor | None,
        eps: Sequence[float],
        mean: bool,
        dtype: torch.dtype,
    ) -> Wiring:
        """Sort the edges, with one loop per node for the node's own share, once for all layers."""
        sizes = ptr.diff()
        nodes = int(ptr[-1])
        loops = torch.arange(nodes).expand(2, -1)
        adjacency = Adjacency(torch.cat([edge_index, loops], dim=1), nodes)
        operators: dict[float, Operator] = {}
        for value in set(eps):
            weight = None
            if edge_weight is not None or value != 0:
                edges = torch.ones(edge_index.size(1), dtype=dtype) if edge_weight is None else edge_weight
                weight = torch.cat([edges, torch.full((nodes,), 1 + value, dtype=dtype)])
            operators[value] = Operator(adjacency.bags(weight), adjacency.bags(weight, reverse=True))
        share = (1 / sizes.to(dtype)).repeat_interleave(sizes) if mean else None
        return cls(tuple(operators[value] for value in eps), ptr, share)

    def piece(self, first: int, last: int) -> tuple[Operator, ...]:
        """S₁ … S_L for graphs `first` … `last` − 1, in rows counted from the first of them."""
        ptr = self.ptr[first : last + 1] - self.ptr[first]
        low, high = self.ptr[[first, last]].tolist()
        cut = {id(op): Operator(_cut(op.along, low, high), _cut(op.against, low, high)) for op in self.layers}
        share = None if self.share is None else self.share[low:high]
        rows = torch.arange(high - low)
        owner = torch.repeat_interleave(ptr.diff())
        readout = Operator(Bags(rows, ptr, share), Bags(owner, torch.arange(high - low + 1), share))
        return (*(cut[id(op)] for op in self.layers), readout)


def _cut(bags: Bags, low: int, high: int) -> Bags:
    """The bags of rows low … high − 1, which hold those rows only."""
    start = bags.start[low : high + 1]
    first, last = start[[0, -1]].tolist()
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
