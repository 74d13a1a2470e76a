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

from apexgnn.aggregation import Adjacency, Bags
from apexgnn.errors import MemoryBudgetError
from apexgnn.explain.fused.fold import Folded
from apexgnn.explain.fused.operators import ManyGraphs, Neighbours, OneGraph, Readout
from apexgnn.explain.fused.workspace import Workspace

CACHE = 20 << 20  # bytes of planes in work at a time: 480 rows of the preset in float32


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done at a time.

    Attributes:
        block: rows that fit the cache.
        most: rows that one graph may have within the memory allowed.
    """

    block: int
    most: int

    @classmethod
    def of(cls, folded: Folded, *, zero: bool, memory: int) -> Plan:
        """From the number of planes of every stage; `zero` tells whether the lowest of them are thin."""
        thin = [stage.thin if zero else 0 for stage in folded.stages]
        layers, size = len(thin) - 1, folded.weight.element_size()
        whole = sum(2**k + 1 - thin[k] for k in range(layers))
        whole += sum(2 ** (k + 1) + 1 - thin[k + 1] for k in range(layers - 1))
        work = sum(2**k + 1 for k in range(layers)) + 6 * 2 ** (layers - 1)
        narrow = 3 * max(len(stage.linear) + len(stage.constant) for stage in folded.stages[:-1])
        width = max(len(stage.matrix) for stage in folded.stages[1:])
        block = max(16, min(CACHE, memory // 4) // (size * (width * work + narrow)))
        scratch = block * size * width * work
        return cls(block, max(0, (memory - scratch) // (size * (width * whole + narrow))))

    def check(self, rows: int, *, what: str, memory: int) -> None:
        """Refuse what does not fit."""
        if rows > max(self.most, self.block):
            need = memory * rows / max(self.most, 1)
            raise MemoryBudgetError(
                f"{what} has {rows} nodes and needs about {need / 2**20:.0f} MiB, more than the "
                f"{memory / 2**20:.0f} MiB allowed. To fix: allow more memory"
            )

    def pieces(self, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Runs first … last − 1 of graphs that fill a block; a larger graph is alone.

        >>> list(Plan(block=300, most=10**6).pieces([100, 100, 100, 100, 900]))
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
    edge_index: Tensor, nodes: int, *, edge_weight: Tensor | None, eps: Sequence[float], dtype: torch.dtype
) -> tuple[Neighbours, ...]:
    """S of every layer: the edges, with a loop for the node's own share, sorted once for all."""
    adjacency = Adjacency(torch.cat([edge_index, torch.arange(nodes).expand(2, -1)], dim=1), nodes)
    sums: dict[float, Neighbours] = {}
    for value in eps:
        if value not in sums:
            weight = None
            if edge_weight is not None or value != 0:
                edges = torch.ones(edge_index.size(1), dtype=dtype) if edge_weight is None else edge_weight
                weight = torch.cat([edges, torch.full((nodes,), 1 + value, dtype=dtype)])
            sums[value] = Neighbours(adjacency.bags(weight), adjacency.bags(weight, reverse=True))
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
    share = (1 / sizes.to(dtype) if mean else torch.ones(len(sizes), dtype=dtype)).unsqueeze(1)
    return ManyGraphs(ptr[:-1] - ptr[0], torch.repeat_interleave(sizes), share, space)
