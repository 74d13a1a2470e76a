"""Neighbourhood sums: out[v] = Σ_{(u→v)∈E} w_uv · h[u].

Duplicate edges are summed, self-loops count as edges, direction is respected.
"""

from __future__ import annotations

import torch
from torch import Tensor


def aggregate(h: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
    """Sum of the neighbours' rows at every node.

    Args:
        h: [N, C] node rows.
        edge_index: [2, E], source row then target row.
        edge_weight: [E], optional.

    >>> aggregate(torch.tensor([[1.], [10.], [100.]]), torch.tensor([[0, 1, 2], [1, 2, 1]]))
    tensor([[  0.],
            [101.],
            [ 10.]])
    """
    source, target = edge_index[0], edge_index[1]
    messages = h.index_select(0, source)
    if edge_weight is not None:
        messages = messages * edge_weight.unsqueeze(-1)
    return torch.zeros_like(h).index_add(0, target, messages)
