"""One graph many times over, with other features or fewer edges each time, in large batches.

R copies of a graph of n nodes are one disjoint graph of R·n nodes: copy r owns the rows r·n … (r + 1)·n − 1
and its edges are the graph's own, shifted by r·n. A model that handles a batch of graphs thus answers R
questions about one graph in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

ROWS_PER_CALL = (
    8192  # rows × 300 channels × 4 bytes are 10 MB: large enough for the matrix products, small for a cache
)


def copied_edges(edge_index: Tensor, *, copies: int, num_nodes: int) -> Tensor:
    """The edges of `copies` disjoint copies, [2, copies · E], copy after copy.

    >>> copied_edges(torch.tensor([[0], [1]]), copies=3, num_nodes=2).tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    shift = num_nodes * torch.arange(copies, device=edge_index.device)
    return (edge_index.unsqueeze(1) + shift.view(1, -1, 1)).flatten(1)


def evaluate_copies(
    model: Callable[..., Tensor],
    x: Tensor,
    *,
    edge_index: Tensor,
    keep: Tensor | None = None,
    edge_weight: Tensor | None = None,
    index: int | None = None,
    rows_per_call: int = ROWS_PER_CALL,
) -> Tensor:
    """The model's output for every copy, [R, C].

    Args:
        model: called `model(x, edge_index, batch=…)`, or `model(x, edge_index)` for a node task.
        x: [R, n, F], the features of each copy.
        edge_index: [2, E], the edges of one copy.
        keep: [R, E], which edges each copy has; all of them by default.
        edge_weight: [E], passed on where given.
        index: the node whose output is wanted; None for graph tasks.
        rows_per_call: upper bound of the rows in one call (a single copy is never split).

    >>> total = lambda x, edge_index, batch: torch.zeros(int(batch.max()) + 1, 1).index_add(0, batch, x)
    >>> x = torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]])
    >>> evaluate_copies(total, x, edge_index=torch.tensor([[0], [1]])).flatten().tolist()
    [3.0, 7.0, 11.0]
    """
    num_nodes = x.size(1)
    step = max(1, rows_per_call // max(num_nodes, 1))
    outputs = []
    for start in range(0, x.size(0), step):
        part = x[start : start + step]
        copies = part.size(0)
        edges = copied_edges(edge_index, copies=copies, num_nodes=num_nodes)
        weight = None if edge_weight is None else edge_weight.repeat(copies)
        if keep is not None:
            kept = keep[start : start + step].flatten()
            edges = edges[:, kept]
            weight = None if weight is None else weight[kept]
        given = {} if weight is None else {"edge_weight": weight}
        if index is None:
            given["batch"] = torch.arange(copies, device=x.device).repeat_interleave(num_nodes)
            outputs.append(model(part.flatten(0, 1), edges, **given))
        else:
            outputs.append(model(part.flatten(0, 1), edges, **given)[index::num_nodes])
    return torch.cat(outputs)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients inside; every module's own mode comes back, also after an exception.

    >>> model = nn.Sequential(nn.Dropout(), nn.Dropout().eval())
    >>> with evaluating(model):
    ...     print(model.training, model[0].training)
    False False
    >>> model.training, model[0].training, model[1].training
    (True, True, False)
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
