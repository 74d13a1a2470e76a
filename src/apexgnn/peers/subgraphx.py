"""SubgraphX: Monte Carlo tree search for the connected subgraph of the highest Shapley value (Yuan et al., 2021).

The root is the whole graph. A child removes one node and keeps the largest component (or the explained node's). At
most `children` nodes are tried, those of low degree first. A rollout goes down by

    argmax  W/N + c·P·√ΣN/(1 + N)

until `min_atoms` nodes are left, and adds the leaf's value to W along its way. P(S) is the Shapley value of the
subgraph S as one player, the nodes within `hops` of it being the others, in the game "probability of the class when
the features of the absent are zero"; nodes further away stay. It is the mean marginal contribution over
`shapley_samples` random orders; where all coalitions cost no more than that, over all of them, exactly.

With `max_nodes` given the answer is the subgraph of the highest P with at most that many nodes; its nodes score P,
all others 0. To rank all nodes by one search, a node's score is otherwise the share of sizes k = 1 … N at which it is
in the best subgraph of k nodes (of the next smaller size that was met, or of the smallest).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer
from apexgnn.peers.neighbours import around
from apexgnn.peers.presence import SharedPresence


@dataclass(slots=True, eq=False)
class _Branch:
    """A subgraph in the search tree: its nodes, its Shapley value P, visits N, total value W, children."""

    nodes: frozenset[int]
    p: float = 0.0
    visits: int = 0
    total: float = 0.0
    children: list[_Branch] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SubgraphX(Explainer):
    """SubgraphX on a private copy.

    Attributes:
        max_nodes: the size of the answer; None scores nodes over all sizes.
        rollouts, children, min_atoms, c_puct: of the search.
        shapley_samples, hops: of the Shapley value.

    >>> from torch_geometric.data import Data
    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.rand(4, 2), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    >>> peer = SubgraphX(rollouts=2, min_atoms=2, shapley_samples=4)
    >>> peer.explain(GIN(2, 2, hidden_channels=4), data).nodes.shape
    torch.Size([4])
    """

    max_nodes: int | None = None
    rollouts: int = 20
    children: int = 14
    min_atoms: int = 5
    c_puct: float = 10.0
    shapley_samples: int = 100
    hops: int = 3

    name: ClassVar[str] = "subgraphx"
    claims: ClassVar[Claims] = Claims(random=True, equivariant=False)
    intrusive: ClassVar[bool] = True

    def _scores(self, case: Case) -> Scores:
        label = case.classes()
        local = around(case)
        search = _Search(self, local.case, label)
        root = search.branches[search.root]
        for _ in range(self.rollouts):
            search.rollout(root)
        return local.whole(search.node_scores(), None, search.evaluations)


class _Search:
    """The tree, the game, and what has been spent."""

    def __init__(self, options: SubgraphX, case: Case, label: int) -> None:
        self.options, self.case, self.label, self.index = options, case, label, case.index
        nodes = case.question.x.size(0)
        self.adjacent: list[set[int]] = [set() for _ in range(nodes)]
        for a, b in case.edge_index.t().tolist():
            if a != b:
                self.adjacent[a].add(b)
                self.adjacent[b].add(a)
        self.evaluations = 0
        self.shared = SharedPresence.of(case)
        self.root = frozenset(range(nodes))
        self.branches: dict[frozenset[int], _Branch] = {}
        self._add([self.root])

    def rollout(self, branch: _Branch) -> float:
        """One way down the tree; the value of its leaf."""
        if len(branch.nodes) <= self.options.min_atoms:
            return branch.p
        if not branch.children:
            branch.children = self._expand(branch)
        if not branch.children:
            return branch.p
        tried = math.sqrt(sum(child.visits for child in branch.children))
        c = self.options.c_puct

        def promise(child: _Branch) -> float:
            mean = child.total / child.visits if child.visits else 0.0
            return mean + c * child.p * tried / (1 + child.visits)

        best = max(branch.children, key=promise)
        value = self.rollout(best)
        best.total += value
        best.visits += 1
        return value

    def node_scores(self) -> Tensor:
        """[N], from the best subgraphs of all sizes, or of the one asked for."""
        total = len(self.adjacent)
        scores = self.case.question.x.new_zeros(total)
        best: dict[int, _Branch] = {}
        for branch in self.branches.values():
            size = len(branch.nodes)
            best[size] = max(best.get(size, branch), branch, key=lambda b: b.p)
        if self.options.max_nodes is not None:
            limit = max(self.options.max_nodes, min(best))
            answer = max((b for size, b in best.items() if size <= limit), key=lambda b: b.p)
            scores[list(answer.nodes)] = answer.p
            return scores
        for size in range(1, total + 1):
            met = max((s for s in best if s <= size), default=min(best))
            scores[list(best[met].nodes)] += 1 / total
        return scores

    def _expand(self, branch: _Branch) -> list[_Branch]:
        """The children of a subgraph, with their Shapley values."""
        degree = {v: len(self.adjacent[v] & branch.nodes) for v in sorted(branch.nodes)}
        order = sorted(degree, key=degree.__getitem__)
        candidates = [v for v in order if v != self.index][: self.options.children]
        found = dict.fromkeys(self._component(branch.nodes - {v}) for v in candidates)
        self._add([nodes for nodes in found if nodes not in self.branches])
        return [self.branches[nodes] for nodes in found]

    def _component(self, nodes: frozenset[int]) -> frozenset[int]:
        """The component of the explained node, or the largest (of equals, the one with the lowest node)."""
        left, components = set(nodes), []
        while left:
            reached, front = set(), {min(left)}
            while front:
                reached |= front
                front = set().union(*(self.adjacent[v] for v in front)) & left - reached
            left -= reached
            components.append(frozenset(reached))
        if self.index is not None:
            return next(c for c in components if self.index in c)
        return max(components, key=len)

    def _add(self, subgraphs: list[frozenset[int]]) -> None:
        """Put new subgraphs into the tree; all their coalitions are evaluated together."""
        if not subgraphs:
            return
        games = [self._game(nodes) for nodes in subgraphs]
        present = torch.cat([with_it for with_it, _, _ in games] + [without for _, without, _ in games])
        value = self._value(present)
        together, apart = value.split(len(value) // 2)
        at = 0
        for nodes, (_, _, weight) in zip(subgraphs, games, strict=True):
            gain = together[at : at + len(weight)] - apart[at : at + len(weight)]
            self.branches[nodes] = _Branch(nodes, p=float(weight @ gain))
            at += len(weight)

    def _game(self, nodes: frozenset[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Coalitions [K, N] with and without the subgraph, and their weights in its Shapley value."""
        near = nodes
        for _ in range(self.options.hops):
            near = near.union(*(self.adjacent[v] for v in near))
        others = torch.tensor(sorted(near - nodes), dtype=torch.long)
        joined, weight = coalitions(len(others), self.options.shapley_samples)
        without = torch.ones(len(joined), len(self.adjacent), dtype=torch.bool)
        without[:, sorted(nodes)] = False
        without[:, others] = joined
        with_it = without.clone()
        with_it[:, sorted(nodes)] = True
        return with_it, without, weight

    def _value(self, present: Tensor) -> Tensor:
        """The probability of the class with the features of the absent set to zero."""
        different, which = torch.unique(present, dim=0, return_inverse=True)
        self.evaluations += len(different)
        if self.shared is not None:
            logits = self.shared.logits(different)
        else:
            logits = self.case.copies(self.case.question.x * different.unsqueeze(-1))
        return logits.double().softmax(-1)[which, self.label]


def coalitions(others: int, samples: int) -> tuple[Tensor, Tensor]:
    """Coalitions [K, others] of the other players, and the weight [K] of each in a player's Shapley value.

    All of them, weighted by t!(m − t)!/(m + 1)!, if there are at most `samples`; else those before the player in random
    orders, weighted equally.

    >>> coalitions(1, 10)[0].tolist(), coalitions(1, 10)[1].tolist()
    ([[False], [True]], [0.5, 0.5])
    """
    if 2**others <= samples:
        joined = torch.arange(2**others).unsqueeze(1) >> torch.arange(others) & 1
        sizes = joined.sum(1).tolist()
        factor = [math.factorial(t) * math.factorial(others - t) / math.factorial(others + 1) for t in sizes]
        return joined.bool(), torch.tensor(factor, dtype=torch.float64)
    arrival = torch.rand(samples, others + 1, dtype=torch.float64)
    return arrival[:, :-1] < arrival[:, -1:], torch.full((samples,), 1 / samples, dtype=torch.float64)
