"""FlowX: importance of message flows (Gui, Yuan, Wang, Lao, Li and Ji, 2023).

Remove all pairs (l, e) in a random order, one per step (at most `chunks` steps for a node task). The probability lost
at a step is shared equally by the flows that die there: those that hold a removed pair and were alive until then.

    d_f = (1/S) Σ_samples w_t · (p_{t−1} − p_t) / #(flows that die at t),      t the step at which flow f dies

plain   w = 1, Monte Carlo marginal contributions. Their sum over all flows is p(all) − p(nothing), less what is lost
        at steps where no flow dies (biases speak on when a flow is dead; without biases nothing is lost so).
minus   w_t = σ(m_t) learned for sufficiency: keep the important pairs, keep the class
plus    w_t = σ(m_t) learned for necessity: remove the important pairs, lose the class

The score of an edge is the sum over layers and flows, as often as it occurs; an edge on no flow ranks last. Nodes take
the end points of all edges, the self-loops that stand for their own features among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from apexgnn.choice import Choice
from apexgnn.conversion import node_scores
from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer
from apexgnn.peers.flows import list_flows, looped
from apexgnn.peers.importance import Goal, learned_weights
from apexgnn.peers.layers import Twin
from apexgnn.peers.neighbours import around
from apexgnn.peers.removal import MaskedLayers, answering, copied_states, shared_rows
from apexgnn.replicas import ROWS_PER_CALL


class Variant(Choice):
    """Which weights the steps get."""

    PLAIN = "plain"
    PLUS = "plus"
    MINUS = "minus"


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """Who loses what in each sampled removal.

    Attributes:
        flows: [M, L], the flows.
        step: [S, M], the step 0 … T − 1 at which each flow dies.
        share: [S, M], its share of the probability lost there.
        unclaimed: [S], probability lost at steps where no flow died.
        probability: [S, T + 1], of the explained class, from everything to nothing.
    """

    flows: Tensor
    step: Tensor
    share: Tensor
    unclaimed: Tensor
    probability: Tensor


def marginals(flows: Tensor, removal: Tensor, probability: Tensor) -> Marginals:
    """Share the losses among the flows.

    >>> flows = torch.tensor([[0], [1]])
    >>> removal, probability = torch.tensor([[[2, 1]]]), torch.tensor([[0.9, 0.7, 0.1]])
    >>> marginals(flows, removal, probability).share.tolist()
    [[0.5999999642372131, 0.19999998807907104]]
    """
    steps = probability.size(1) - 1
    dies = torch.stack([removal[:, layer, flows[:, layer]] for layer in range(flows.size(1))]).amin(0) - 1
    lost = probability[:, :-1] - probability[:, 1:]
    ever = dies < steps  # a flow of pairs that cannot be removed never dies
    step = dies.clamp(max=steps - 1)
    deaths = torch.zeros_like(lost).scatter_add(1, step, ever.to(lost))
    share = torch.where(ever, (lost / deaths.clamp(min=1)).gather(1, step), 0)
    unclaimed = torch.where(deaths > 0, 0, lost).sum(1)
    return Marginals(flows, step, share, unclaimed, probability)


@dataclass(frozen=True, kw_only=True)
class FlowX(Explainer):
    """FlowX on a private copy.

    Attributes:
        variant: "plain", "plus" or "minus".
        samples: sampled orders of removal.
        chunks: most steps in a node task.
        epochs: of the learned variants.
        sparsity: the share of edges that "plus" is told to leave alone.

    >>> from torch_geometric.data import Data
    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> FlowX(samples=2).explain(GIN(2, 2, hidden_channels=4), data).edges.shape
    torch.Size([2])
    """

    variant: Variant | str = Variant.PLAIN
    samples: int = 30
    chunks: int = 100
    epochs: int = 500
    sparsity: float = 0.7

    name: ClassVar[str] = "flowx"
    claims: ClassVar[Claims] = Claims(random=True, equivariant=False)
    intrusive: ClassVar[bool] = True

    def _scores(self, case: Case) -> Scores:
        label = case.classes()
        local = around(case)
        case = local.case
        x, own = case.question.x, case.edge_index
        edges = looped(own, len(x))
        masked = MaskedLayers(case, edges)
        flows = list_flows(edges.edge_index, layers=masked.layers, num_nodes=len(x), index=case.index)
        removal, steps = self._orders(masked.removable, node_task=case.index is not None)
        if isinstance(masked.model, Twin):
            logits = torch.cat(
                [
                    shared_rows(masked.model, case, edges, removal=part, steps=steps)
                    for part in removal.split(max(1, 4 * ROWS_PER_CALL // (steps + 1)))
                ]
            )
        else:
            logits = copied_states(masked, removal, steps=steps, rows_per_call=ROWS_PER_CALL)
        found = marginals(flows, removal, logits.softmax(-1)[..., label])
        shares, epochs = by_step(found, masked.removable.shape), 0
        if Variant(self.variant) is not Variant.PLAIN:
            shares = shares * learned_weights(shares, answering(masked), self._goal(label))
            epochs = self.epochs
        scores = shares.sum((0, 2))
        visited = torch.zeros_like(scores, dtype=torch.bool)
        visited[flows.flatten()] = True
        scores = torch.where(visited, scores, scores.min().clamp(max=0))
        nodes = node_scores(scores, edges.edge_index, num_nodes=len(x), conversion=self.conversion)
        return local.whole(nodes, scores[edges.column], self.samples * (steps + 1) + epochs)

    def _orders(self, removable: Tensor, *, node_task: bool) -> tuple[Tensor, int]:
        """The step [S, L, E₀ + N] from 1 on at which each pair goes, and how many steps there are."""
        pairs = int(removable.sum())
        steps = max(1, min(pairs, self.chunks) if node_task else pairs)
        removal = torch.full((self.samples, *removable.shape), steps + 1)
        for sample in range(self.samples):
            removal[sample, removable] = torch.randperm(pairs) * steps // max(1, pairs) + 1
        return removal, steps

    def _goal(self, label: int) -> Goal:
        return Goal(Variant(self.variant) is Variant.PLUS, label, self.epochs, self.sparsity)


def by_step(found: Marginals, shape: torch.Size) -> Tensor:
    """[L, E₀ + N, T]: what the flows through each pair lose at each step, averaged over samples."""
    steps, samples = found.probability.size(1) - 1, found.share.size(0)
    share, place = found.share.flatten() / samples, torch.empty_like(found.step)
    layers = []
    for layer in range(shape[0]):
        torch.add(found.flows[:, layer] * steps, found.step, out=place)
        layers.append(share.new_zeros(shape[1] * steps).index_add(0, place.flatten(), share))
    return torch.stack(layers).view(*shape, steps)
