"""The contract that every explainer is held to, ours, the peers' and yours."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn
from torch_geometric.data import Data

from apexgnn.peers.explainer import Claims
from apexgnn.testing import clauses
from apexgnn.testing.clauses import Explains, Trial


def check_explainer(
    explainer: Explains,
    model: nn.Module,
    *,
    graphs: Sequence[Data],
    index: int | None = None,
    seed: int = 0,
    claims: Claims | None = None,
) -> tuple[str, ...]:
    """Hold an explainer to every clause that applies; raises `ContractError`, returns the clauses checked.

    Args:
        explainer: fitted, where it needs to be.
        model: in float32, with two or more output columns.
        graphs: two or more small graphs of different sizes; the first is explained most.
        index: the explained node, for a node task.
        seed: under which it is asked.
        claims: what it promises; its own `claims` by default.

    >>> import torch
    >>> from apexgnn import peers
    >>> from apexgnn.nn import GIN
    >>> from apexgnn.testing import random_graph
    >>> generator = torch.Generator().manual_seed(0)
    >>> graphs = [random_graph(nodes, features=3, generator=generator) for nodes in (4, 6)]
    >>> check_explainer(peers.get("saliency"), GIN(3, 2, hidden_channels=4), graphs=graphs)[:3]
    ('untouched', 'result', 'score')
    """
    claims = claims or getattr(explainer, "claims", None) or Claims()
    trial = Trial(explainer, claims, model, graphs, index, seed)
    applicable = {
        "untouched": clauses.untouched,
        "result": clauses.result,
        "score": clauses.score,
        "sign": None if claims.signed else clauses.sign,
        "determinism": clauses.determinism,
        "precision": clauses.precision,
        "batch": clauses.batch,
        "edges": clauses.no_edges,
        "refusal": clauses.refusal,
        "equivariance": clauses.equivariance if claims.equivariant else None,
        "dummy": clauses.dummy if claims.dummy and index is not None else None,
        "linearity": clauses.linearity if claims.linear else None,
        "completeness": clauses.completeness if claims.complete else None,
    }
    held = {name: clause for name, clause in applicable.items() if clause is not None}
    for clause in held.values():
        clause(trial)
    return tuple(held)
