"""A batch cut into pieces of whole graphs, each small enough that its planes stay in cache.

A product with a 300 × 300 matrix takes 0.9 µs per row on a machine whose memory needs 0.1 to 0.3 µs to move that row
once, and every row is moved some eighty times. In cache this is a fraction of the time of the products; out of
it, several times as much. A graph larger than a piece is one piece by itself, worked on in blocks of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.aggregation import Bags
from apexgnn.errors import MemoryBudgetError
from apexgnn.explain.fused.fold import Folded
from apexgnn.explain.fused.operators import ManyGraphs, Neighbours, OneGraph, Readout
from apexgnn.explain.fused.polynomial import by_values
from apexgnn.explain.fused.workspace import Workspace

CACHE = 45 << 20  # bytes of planes in work at a time: 670 rows of the preset in float32


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done at a time, and what it takes.

    Attributes:
        block: rows that are worked on at a time.
        scratch: bytes that a block takes.
        per_row: for each layer, the bytes kept for each of its rows from block to block.
        memory: bytes allowed.
    """

    block: int
    scratch: int
    per_row: tuple[int, ...]
    memory: int

    @classmethod
    def of(cls, folded: Folded, *, zero: bool, memory: int) -> Plan:
        """Count the planes of every layer; `zero` tells whether the lowest of them are thin."""
        thin = [stage.thin if zero else 0 for stage in folded.stages]
        layers, size = len(thin) - 1, folded.weight.element_size()
        width = max(len(stage.matrix) for stage in folded.stages[1:])
        narrow = [3 * (len(stage.linear) + len(stage.constant)) for stage in folded.stages[:-1]]
        full = [2**k + 1 - thin[k] for k in range(layers)]  # w
        for k in range(layers - 1):
            full[k] += 2 ** (k + 1) + 1 - thin[k + 1]  # u
        y, u = sum(2**k + 1 for k in range(layers)), sum(2 ** (k + 1) + 1 for k in range(layers - 1))
        values = sum(2 ** (k + 1) + 2 for k in range(layers) if by_values(k, layers))
        working = (
            y + u + values + 7 * 2 ** (layers - 1) + 2
        )  # and above the last layer u, its adjoint, that of y
        row = size * (width * working + max(narrow))
        block = max(16, min(CACHE, memory // 4) // row)
        per_row = tuple(size * (width * planes + extra) for planes, extra in zip(full, narrow, strict=True))
        return cls(block, block * row, per_row, memory)

    def check(self, rows: Sequence[int], *, what: str) -> None:
        """Refuse a piece whose layers have so many rows, if it does not fit."""
        need = self.scratch
        if max(rows) > self.block:
            need += sum(n * each for n, each in zip(rows, self.per_row, strict=True))
        if need > self.memory:
            raise MemoryBudgetError(
                f"{what} has {max(rows)} nodes and needs about {need / 2**20:.0f} MiB, more than the "
                f"{self.memory / 2**20:.0f} MiB allowed. To fix: allow more memory"
            )

    def pieces(self, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Runs first … last − 1 of graphs that fill a block; a larger graph is alone.

        >>> plan = Plan(block=300, scratch=0, per_row=(1,), memory=10**6)
        >>> list(plan.pieces([100, 100, 100, 100, 900]))
        [(0, 3), (3, 4), (4, 5)]
        """
        first = rows = 0
        for last, size in enumerate(sizes):
            if last > first and rows + size > self.block:
                yield first, last
                first, rows = last, 0
            rows += size
        yield first, len(sizes)


def layer_sums(
    edges: Tensor,
    rows: int,
    *,
    sources: int,
    edge_weight: Tensor | None,
    eps: Sequence[float],
    dtype: torch.dtype,
) -> tuple[Neighbours, ...]:
    """S of layers with these ε, among the same rows: sorted once for all.

    Args:
        edges: [2, E], from source rows to rows.
        rows: how many rows there are; each is the source row of the same number, too.
        sources: how many source rows there are.
    """
    loops = torch.arange(rows)
    source, target = torch.cat([edges[0], loops]), torch.cat([edges[1], loops])
    along, order = Bags.grouped(target, source, rows)
    against, order_back = Bags.grouped(source, target, sources)
    sums: dict[float, Neighbours] = {}
    for value in set(eps):
        weight = weight_back = None
        if edge_weight is not None or value != 0:
            own = torch.ones(edges.size(1), dtype=dtype) if edge_weight is None else edge_weight
            weights = torch.cat([own, torch.full((rows,), 1 + value, dtype=dtype)])
            weight, weight_back = weights[order], weights[order_back]
        sums[value] = Neighbours(along.weighted(weight), against.weighted(weight_back))
    return tuple(sums[value] for value in eps)


def cut(layers: Sequence[Neighbours], low: int, high: int) -> tuple[Neighbours, ...]:
    """The sums among rows low … high − 1, which have no edges with others, counted from the first of them."""
    if (low, high) == (0, len(layers[0].along.start)):
        return tuple(layers)
    parts = {id(s): Neighbours(_cut(s.along, low, high), _cut(s.against, low, high)) for s in layers}
    return tuple(parts[id(s)] for s in layers)


def _cut(bags: Bags, low: int, high: int) -> Bags:
    part = bags.part(low, high)
    return Bags(part.index - low, part.start, part.weight)


def readout_of(ptr: Tensor, *, mean: bool, space: Workspace, dtype: torch.dtype) -> Readout:
    """The readout of graphs whose rows begin at ptr[0], ptr[1], … and end at ptr[−1]."""
    if len(ptr) == 2:
        return OneGraph(1 / int(ptr[1] - ptr[0]) if mean else 1.0)
    sizes = ptr.diff()
    counted = sizes.clamp(min=1).to(dtype)
    share = (1 / counted if mean else torch.ones_like(counted)).unsqueeze(1)
    return ManyGraphs(ptr[:-1] - ptr[0], torch.repeat_interleave(sizes), share, space)
