"""FlowX: importance of message flows (Gui, Yuan, Wang, Lao, Li and Ji, 2023).

Remove all pairs (l, e) in a random order, one per step (at most `chunks` steps for a node task). The probability lost
at a step is shared equally by the flows that die there: those that hold a removed pair and were alive until then.

    d_f = (1/S) Σ_samples w_t · (p_{t−1} − p_t) / #(flows that die at t),      t the step at which flow f dies

plain   w = 1, Monte Carlo marginal contributions. Their sum over all flows is p(all) − p(nothing), less what is lost
        at steps where no flow dies (biases speak on when a flow is dead; without biases nothing is lost so).
minus   w_t = σ(m_t) learned for sufficiency: keep the important pairs, keep the class
plus    w_t = σ(m_t) learned for necessity: remove the important pairs, lose the class

The score of an edge is the sum over layers and flows, as often as it occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from apexgnn.choice import Choice
from apexgnn.conversion import node_scores
from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer
from apexgnn.peers.flows import list_flows, looped
from apexgnn.peers.layers import Twin
from apexgnn.peers.neighbours import around
from apexgnn.peers.removal import MaskedLayers, copied_states, shared_rows
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
        weights, epochs = self._weights(found, masked, label)
        pairs = layer_edges(found, weights, masked.removable.shape)
        scores = pairs.sum(0)
        visited = torch.zeros_like(scores, dtype=torch.bool)
        visited[flows.flatten()] = True
        scores = torch.where(visited, scores, scores.min().clamp(max=0))
        nodes = node_scores(scores, edges.edge_index, num_nodes=len(x), conversion=self.conversion)
        return local.whole(nodes, scores[edges.column], self.samples * (steps + 1) + epochs)

    def _orders(self, removable: Tensor, *, node_task: bool) -> tuple[Tensor, int]:
        """The step [S, L, E₀ + N] from 1 on at which each pair goes, and how many steps there are."""
        pairs = int(removable.sum())
        steps = min(pairs, self.chunks) if node_task else pairs
        removal = torch.full((self.samples, *removable.shape), steps + 1)
        for sample in range(self.samples):
            removal[sample, removable] = torch.randperm(pairs) * steps // pairs + 1
        return removal, steps

    def _weights(self, found: Marginals, masked: MaskedLayers, label: int) -> tuple[Tensor, int]:
        """σ(m), [T], and how many epochs it took to learn."""
        steps = found.probability.size(1) - 1
        variant = Variant(self.variant)
        if variant is Variant.PLAIN:
            return found.share.new_ones(steps), 0
        m = (0.1 * torch.rand(steps)).to(found.share).requires_grad_()
        affine = torch.tensor([1.0, 0.0]).to(found.share).requires_grad_()
        label_of = torch.tensor([label])
        if variant is Variant.MINUS:
            optimizer = torch.optim.Adam([m], lr=0.3)
        else:
            optimizer = torch.optim.Adam([m, affine], lr=0.1, weight_decay=1e-5)
        for _ in range(self.epochs):
            pairs = layer_edges(found, m.sigmoid(), masked.removable.shape)
            if variant is Variant.MINUS:
                kept = _scaled(_scaled(pairs) ** 8)
                loss = cross_entropy(masked.logits(kept.unsqueeze(0)), label_of) + 5e-4 * m.sigmoid().sum()
            else:
                normal = (pairs - pairs.mean()) / (pairs.std() + 1e-5)
                logits = affine[0] * normal + affine[1]
                removed = (logits + torch.rand_like(logits).clamp(1e-6, 1 - 1e-6).logit()).sigmoid()
                loss = _divergence(logits.sigmoid(), 1 - self.sparsity)
                loss = loss - cross_entropy(masked.logits((1 - removed).unsqueeze(0)), label_of)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return m.detach().sigmoid(), self.epochs


def layer_edges(found: Marginals, weights: Tensor, shape: torch.Size) -> Tensor:
    """[L, E₀ + N]: the scores of the flows through each pair, summed."""
    scores = (weights[found.step] * found.share).mean(0)
    return torch.stack(
        [scores.new_zeros(shape[1]).index_add(0, found.flows[:, layer], scores) for layer in range(shape[0])]
    )


def _scaled(values: Tensor) -> Tensor:
    """Shift and scale to [0, 1]."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low + 1e-12)


def _divergence(p: Tensor, q: float) -> Tensor:
    """Mean Kullback–Leibler divergence of Bernoulli(p) from Bernoulli(q)."""
    p = p.clamp(1e-6, 1 - 1e-6)
    return (p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()).mean()
