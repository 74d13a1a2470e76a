"""Graphs shaped like molecules, made from a seed: nothing need be downloaded to measure.

A random tree in which every atom hangs on one of the three before it, and bonds that close rings of six: atoms have
up to four neighbours, as in Mutagenicity, whose 4,337 molecules have 30.3 ± 20.1 atoms, at least 4, and 61.5 directed
edges: 1.45 rings each. Features are one of 14 kinds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data

KINDS = 14
MEAN_SIZE, SPREAD, SMALLEST, MEAN_RINGS = 30.3, 20.1, 4, 1.45
VALENCE = (4, 2, 1, 1, 3)  # C, O, Cl, H, N, as Mutagenicity numbers them
HEAVY = (0.76, 0.13, 0.02, 0.0, 0.09)  # their shares among the atoms that are not hydrogen
HYDROGEN = 3


def molecule(nodes: int, rings: int, generator: np.random.Generator) -> Data:
    """A graph of nodes − 1 + rings bonds, each in both directions.

    >>> graph = molecule(30, 2, np.random.default_rng(0))
    >>> graph.num_nodes, graph.num_edges, tuple(graph.x.shape)
    (30, 62, (30, 14))
    """
    child = np.arange(1, nodes)
    parent = child - 1 - (generator.random(nodes - 1) * np.minimum(child, 3)).astype(np.int64)
    closing = generator.permutation(max(nodes - 5, 0))[:rings]
    bonds = torch.from_numpy(np.stack([np.r_[parent, closing], np.r_[child, closing + 5]]))
    kinds = torch.from_numpy(generator.integers(KINDS, size=nodes))
    return Data(x=one_hot(kinds, KINDS).float(), edge_index=torch.cat([bonds, bonds.flip(0)], dim=1))


def alike(count: int, *, seed: int) -> list[Data]:
    """Graphs of 30 nodes and 62 directed edges."""
    generator = np.random.default_rng(seed)
    return [molecule(30, 2, generator) for _ in range(count)]


def like_mutagenicity(count: int, *, seed: int) -> list[Data]:
    """Graphs whose sizes are spread as Mutagenicity's are.

    >>> graphs = like_mutagenicity(2000, seed=0)
    >>> nodes, edges = (sum(n) / 2000 for n in zip(*((g.num_nodes, g.num_edges) for g in graphs)))
    >>> abs(nodes - 30.3) < 1, abs(edges - 61.5) < 2
    (True, True)
    """
    generator = np.random.default_rng(seed)
    mean = MEAN_SIZE - SMALLEST
    shape = (mean / SPREAD) ** 2
    sizes = SMALLEST + np.rint(generator.gamma(shape, mean / shape, size=count)).astype(int)
    rings = generator.poisson(MEAN_RINGS * sizes / MEAN_SIZE)
    return [molecule(int(n), int(r), generator) for n, r in zip(sizes, rings, strict=True)]


def saturated(count: int, *, seed: int) -> list[Data]:
    """Graphs with hydrogens: trees of 6 to 20 heavy atoms, rings closed, hydrogens up to the valence; labels at random.

    Hydrogens repeat as they do in molecules, which matters to whatever merges equal nodes.

    >>> graphs = saturated(300, seed=0)
    >>> 25 < sum(graph.num_nodes for graph in graphs) / 300 < 35
    True
    """
    generator = np.random.default_rng(seed)
    return [_saturated(int(size), generator) for size in generator.integers(6, 21, size=count)]


def _saturated(size: int, generator: np.random.Generator) -> Data:
    kinds = generator.choice(len(VALENCE), size=size, p=HEAVY)
    kinds[0] = 0
    free = np.array(VALENCE)[kinds]
    bonds = []
    for atom in range(1, size):
        open_ones = np.flatnonzero(free[:atom] > 0)
        if not len(open_ones):
            kinds, free = kinds[:atom], free[:atom]
            break
        bonds.append((atom, int(generator.choice(open_ones[-4:]))))
        free[list(bonds[-1])] -= 1
    for atom in range(5, len(kinds), 6):
        if free[atom] > 0 and free[atom - 5] > 0:
            bonds.append((atom, atom - 5))
            free[[atom, atom - 5]] -= 1
    holders = np.repeat(np.arange(len(kinds)), np.minimum(free.clip(0), 2))
    bonds += [(len(kinds) + i, int(atom)) for i, atom in enumerate(holders)]
    every = torch.from_numpy(np.concatenate([kinds, np.full(len(holders), HYDROGEN)]))
    ends = torch.tensor(bonds).reshape(-1, 2).t()
    label = torch.from_numpy(generator.integers(2, size=1))
    return Data(x=one_hot(every, KINDS).float(), edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=label)


class Graphs(NamedTuple):
    """A batch as plain tensors; `batch` is None for a single graph, which every model handles fastest."""

    x: Tensor
    edge_index: Tensor
    batch: Tensor | None
    number: int

    @classmethod
    def joined(cls, graphs: list[Data]) -> Graphs:
        """The graphs side by side.

        >>> Graphs.joined(alike(2, seed=0)).x.shape
        torch.Size([60, 14])
        """
        sizes = torch.tensor([graph.num_nodes for graph in graphs])
        first = (sizes.cumsum(0) - sizes).tolist()
        return cls(
            torch.cat([graph.x for graph in graphs]),
            torch.cat([graph.edge_index + n for graph, n in zip(graphs, first, strict=True)], dim=1),
            None if len(graphs) == 1 else torch.repeat_interleave(sizes),
            len(graphs),
        )

    def double(self) -> Graphs:
        """The same in float64."""
        return self._replace(x=self.x.double())

    @property
    def data(self) -> Data:
        """As PyTorch Geometric's data."""
        return Data(x=self.x, edge_index=self.edge_index, batch=self.batch)
