"""Small random graphs."""

from __future__ import annotations

import torch
from torch_geometric.data import Data


def random_graph(nodes: int, *, features: int, generator: torch.Generator) -> Data:
    """A random connected undirected graph with Gaussian features: a path and a few chords.

    >>> random_graph(4, features=2, generator=torch.Generator().manual_seed(0)).x.shape
    torch.Size([4, 2])
    """
    path = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    chords = torch.randint(nodes, (2, nodes // 2), generator=generator)
    forth = torch.cat([path, chords[:, chords[0] != chords[1]]], dim=1)
    both = torch.cat([forth, forth.flip(0)], dim=1)
    return Data(
        x=torch.randn(nodes, features, generator=generator), edge_index=torch.unique(both, dim=1).long()
    )
