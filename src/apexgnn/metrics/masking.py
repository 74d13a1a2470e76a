"""Which nodes are kept and what the others look like, for all sparsities and permutations of a graph at once.

With K sparsities and P permutations, a graph of n nodes becomes 2·K·P copies: K·P in which the selected nodes
are masked (G∖S, for Fidelity⁺), and K·P in which all others are (G[S], for Fidelity⁻). Everything is index
arithmetic on one [2, K, P, n] array of row numbers; no graph is built.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor
from torch_geometric.data import Data

from apexgnn.attribution import Attribution
from apexgnn.errors import InputError
from apexgnn.explain.graph_checks import check_graph
from apexgnn.metrics.protocol import MOST_EXHAUSTIVE_NODES, Masking, Protocol, Ranking


def features_of(graph: Data, position: int) -> Tensor:
    """The checked features of one single graph.

    >>> features_of(Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]])), 0).shape
    torch.Size([2, 1])
    """
    x = check_graph(graph)
    if graph.batch is not None and int(graph.batch.max()) > 0:
        got = f"a batch of {int(graph.batch.max()) + 1} graphs"
        raise InputError(f"graphs[{position}]", got=got, expected="a single graph")
    return x


def check_class(score: Attribution, label: int, *, where: str, output: str) -> None:
    """An explanation of another class is not measured in silence."""
    if int(score.target) != label:
        raise InputError(
            where,
            got=f"an explanation of class {int(score.target)}",
            expected=f"one of class {label}, whose {output} is followed",
            fix=f"explain that class with target={label}",
        )


def kept_counts(sparsities: tuple[float, ...], num_nodes: int) -> list[int]:
    """How many nodes each sparsity keeps: (1 − s)·N to the nearest, halves up, at least one.

    >>> kept_counts((0.1, 0.5, 0.9), 5)
    [5, 3, 1]
    """
    return [max(1, int((1 - s) * num_nodes + 0.5 + 1e-9)) for s in sparsities]


def selections(scores: Tensor, protocol: Protocol) -> Tensor:
    """[K, N] booleans: the best nodes at each sparsity.

    >>> selections(torch.tensor([0.1, -3.0, 2.0]), Protocol(sparsities=(0.3, 0.7))).int().tolist()
    [[1, 0, 1], [0, 0, 1]]
    """
    if not bool(torch.isfinite(scores).all()):
        raise InputError("scores", got="NaN or infinite node scores", expected="finite scores")
    ranked = scores.abs() if protocol.ranking is Ranking.ABSOLUTE else scores
    order = torch.argsort(ranked, descending=True, stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    counts = torch.tensor(kept_counts(protocol.sparsities, len(scores)), device=order.device)
    return place < counts.unsqueeze(1)


def permutations(num_nodes: int, protocol: Protocol, position: int) -> Tensor:
    """[P, N]: the permutations of a graph's rows; `position` is the graph's place in the data set.

    >>> permutations(3, Protocol(permutations="all"), 0).tolist()
    [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    """
    if protocol.permutations == "all":
        if num_nodes > MOST_EXHAUSTIVE_NODES:
            expected = f"graphs of at most {MOST_EXHAUSTIVE_NODES} nodes for permutations='all'"
            raise InputError("graphs", got=f"a graph of {num_nodes} nodes", expected=expected)
        return torch.tensor(list(itertools.permutations(range(num_nodes))))
    generator = torch.Generator().manual_seed(protocol.seed * 1_000_003 + position)
    return torch.rand(int(protocol.permutations), num_nodes, generator=generator).argsort(dim=1)


def masked_copies(
    x: Tensor, edge_index: Tensor, *, selected: Tensor, protocol: Protocol, position: int
) -> tuple[Tensor, Tensor | None]:
    """The features [2·K·P, N, F] of all copies and the edges [2·K·P, E] that each keeps (None: all).

    First the copies without the selected nodes, then those with them alone.
    """
    masked = torch.stack([selected, ~selected])  # [2, K, N]
    if protocol.masking is Masking.PERMUTATION:
        donors = permutations(x.size(0), protocol, position).to(x.device)
        own = torch.arange(x.size(0), device=x.device)
        rows = torch.where(masked.unsqueeze(2), donors, own)  # [2, K, P, N]
        return x[rows.flatten(0, 2)], None
    masked = masked.flatten(0, 1)
    if protocol.masking is Masking.BASELINE:
        baseline = torch.as_tensor(protocol.baseline, dtype=x.dtype, device=x.device)
        return torch.where(masked.unsqueeze(-1), baseline, x), None
    keep = ~(masked[:, edge_index[0]] | masked[:, edge_index[1]])
    return x.expand(masked.size(0), *x.shape), keep
