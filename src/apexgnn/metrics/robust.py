"""Robust fidelity: remove edges at random rather than all at once, so that masked graphs stay near the data.

With E_S the explanation's edges, p the probability of the predicted class (Zheng et al., 2024):

    Fid₊ = p(G) − E p(G without each edge of E_S, independently with probability α₁)
    Fid₋ = p(G) − E p(E_S and every other edge, independently with probability α₂)
    Δ    = Fid₊ − Fid₋

α₁ = 1 and α₂ = 0 are the classical fidelities. Edges are ranked by the attribution's edge scores, or by the
mean of their end points' node scores; E_S are the best round((1 − s)·E). The two directions of an edge fall
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from apexgnn.attribution import Attribution
from apexgnn.conversion import edge_scores
from apexgnn.errors import InputError
from apexgnn.explain.question import pyg_call
from apexgnn.explain.untouched import untouched
from apexgnn.metrics.masking import check_class, features_of, kept_counts
from apexgnn.replicas import evaluate_copies


@dataclass(frozen=True, slots=True, eq=False)
class RobustFidelity:
    """Robust Fid₊ and Fid₋ of every graph at one sparsity.

    Attributes:
        plus: [G].
        minus: [G].
        label: [G], the predicted class, whose probability is followed.
        sparsity: of the explanation's edges.
        alphas: (α₁, α₂).
        samples: random edge sets per graph and direction.
        seed: of the samples.
    """

    plus: Tensor
    minus: Tensor
    label: Tensor
    sparsity: float
    alphas: tuple[float, float]
    samples: int
    seed: int

    @property
    def delta(self) -> Tensor:
        """[G], Fid₊ − Fid₋."""
        return self.plus - self.minus


def undirected_groups(edge_index: Tensor) -> Tensor:
    """[E], a number per edge that both of its directions share.

    >>> undirected_groups(torch.tensor([[0, 1, 1], [1, 0, 2]])).tolist()
    [0, 0, 1]
    """
    ends = edge_index.sort(dim=0).values
    group: Tensor = torch.unique(ends, dim=1, return_inverse=True)[1]
    return group


def robust_fidelity(
    model: nn.Module,
    graphs: Sequence[Data],
    *,
    scores: Sequence[Attribution],
    sparsity: float = 0.7,
    alphas: tuple[float, float] = (0.1, 0.9),
    samples: int = 50,
    seed: int = 0,
) -> RobustFidelity:
    """Robust fidelity of attributions of single graphs (graph tasks).

    >>> from apexgnn.nn import GIN
    >>> graph = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> model, zero = GIN(3, 2, hidden_channels=4).eval(), torch.zeros(1)
    >>> predicted = model(graph.x, graph.edge_index).argmax(1)
    >>> share = Attribution(None, torch.ones(3), predicted, zero, zero, zero, 0, False, None)
    >>> robust_fidelity(model, [graph], scores=[share], samples=2).delta.shape
    torch.Size([1])
    """
    if not all(0 <= alpha <= 1 for alpha in alphas):
        raise InputError("alphas", got=repr(alphas), expected="two probabilities")
    if len(scores) != len(graphs):
        raise InputError("scores", got=f"{len(scores)} for {len(graphs)} graphs", expected="one per graph")
    rows = []
    call = partial(pyg_call(node_task=False), model)
    with untouched(model), torch.no_grad():
        model.eval()
        for position, (graph, score) in enumerate(zip(graphs, scores, strict=True)):
            x = features_of(graph, position)
            generator = torch.Generator().manual_seed(seed * 1_000_003 + position)
            explained = _explained(graph.edge_index, score, sparsity)
            chance = torch.rand(2, samples, graph.num_edges, generator=generator)
            keep = _edge_sets(undirected_groups(graph.edge_index), explained, chance=chance, alphas=alphas)
            logits = evaluate_copies(call, graph, x=x.expand(keep.size(0), *x.shape), keep=keep)
            label = int(logits[0].argmax())
            check_class(score, label, where=f"scores[{position}]", output="probability")
            p = logits.double().softmax(-1)[:, label]
            plus, minus = p[0] - p[1 : samples + 1].mean(), p[0] - p[samples + 1 :].mean()
            rows.append((plus, minus, torch.tensor(label)))
    pluses, minuses, labels = (torch.stack(column) for column in zip(*rows, strict=True))
    return RobustFidelity(pluses, minuses, labels, sparsity, alphas, samples, seed)


def _explained(edge_index: Tensor, score: Attribution, sparsity: float) -> Tensor:
    """[E] booleans: the best edges."""
    edges = score.edges if score.edges is not None else edge_scores(score.nodes, edge_index)
    explained = torch.zeros(edges.numel(), dtype=torch.bool)
    if edges.numel():
        count = kept_counts((sparsity,), edges.numel())[0]
        explained[torch.argsort(edges, descending=True, stable=True)[:count]] = True
    return explained


def _edge_sets(group: Tensor, explained: Tensor, *, chance: Tensor, alphas: tuple[float, float]) -> Tensor:
    """[1 + 2·samples, E] booleans: all edges, then the samples for Fid₊, then those for Fid₋."""
    drawn = chance[..., group]
    plus = ~(explained & (drawn[0] < alphas[0]))
    minus = explained | (drawn[1] < alphas[1])
    return torch.cat([torch.ones_like(plus[:1]), plus, minus])
