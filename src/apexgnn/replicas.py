"""One graph many times over, with other features or fewer edges each time, in large batches.

R copies of a graph of n nodes are one disjoint graph of R·n nodes: copy r owns the rows r·n … (r + 1)·n − 1
and its edges are the graph's own, shifted by r·n. A model that handles a batch of graphs thus answers R
questions about one graph in one call. A model that mixes them (a norm over all rows that it is given) is asked about
one copy at a time: the first answer shows it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data

ROWS_PER_CALL = 4096  # × 300 channels × 4 bytes = 5 MB: long matrix products that still fit a cache


def copied_edges(edge_index: Tensor, *, copies: int, num_nodes: int) -> Tensor:
    """The edges of `copies` disjoint copies, [2, copies · E], copy after copy.

    >>> copied_edges(torch.tensor([[0], [1]]), copies=3, num_nodes=2).tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    shift = num_nodes * torch.arange(copies, device=edge_index.device)
    return (edge_index.unsqueeze(1) + shift.view(1, -1, 1)).flatten(1)


def evaluate_copies(
    call: Callable[[Data], Tensor],
    graph: Data,
    *,
    x: Tensor,
    keep: Tensor | None = None,
    index: int | None = None,
    rows_per_call: int = ROWS_PER_CALL,
) -> Tensor:
    """The model's output for every copy, [R, C].

    Args:
        call: the model on a batch: `call(data)` with `data.x`, `.edge_index`, `.edge_weight` and `.batch`.
        graph: one graph; its edges and edge weights are those of every copy.
        x: [R, n, F], the features of each copy.
        keep: [R, E], which edges each copy has; all of them by default.
        index: the node whose output is wanted; None for graph tasks.
        rows_per_call: upper bound of the rows in one call (a single copy is never split).

    >>> total = lambda data: torch.zeros(int(data.batch.max()) + 1, 1).index_add(0, data.batch, data.x)
    >>> x = torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]])
    >>> evaluate_copies(total, Data(edge_index=torch.tensor([[0], [1]])), x=x).flatten().tolist()
    [3.0, 7.0, 11.0]
    """
    num_nodes, weight = x.size(1), graph.edge_weight
    step = max(1, rows_per_call // num_nodes)
    outputs = []
    for start in range(0, x.size(0), step):
        part = x[start : start + step]
        copies = part.size(0)
        data = Data(
            x=part.flatten(0, 1),
            edge_index=copied_edges(graph.edge_index, copies=copies, num_nodes=num_nodes),
            edge_weight=None if weight is None else weight.repeat(copies),
            batch=torch.arange(copies, device=x.device).repeat_interleave(num_nodes),
        )
        if keep is not None:
            kept = keep[start : start + step].flatten()
            data.edge_index = data.edge_index[:, kept]
            data.edge_weight = None if weight is None else data.edge_weight[kept]
        output = call(data)
        if start == 0 and copies > 1 and not _alone(call, graph, part, keep, output):
            return evaluate_copies(call, graph, x=x, keep=keep, index=index, rows_per_call=1)
        outputs.append(output if index is None else output[index::num_nodes])
    return torch.cat(outputs)


def _alone(
    call: Callable[[Data], Tensor], graph: Data, x: Tensor, keep: Tensor | None, together: Tensor
) -> bool:
    """Whether the first copy's output is what it is without the other copies."""
    keep = None if keep is None else keep[:1]
    with torch.no_grad():
        alone = evaluate_copies(call, graph, x=x[:1], keep=keep)
        first = together[: len(alone)]
        return bool(torch.allclose(alone, first, rtol=0, atol=1e-4 * float(alone.abs().max())))
