"""FlowX's learned weights: what a step of the removal counts for (Gui, Yuan, Wang, Lao, Li and Ji, 2023).

With A[l, e, t] the loss at step t that falls to flows through pair (l, e), averaged over samples, the pairs score

    d = A σ(m)

linear in the weights, so that samples and flows are gone before the first of the epochs. Adam finds m [T], which starts
at 0.1·U(0, 1):

    minus   messages × scale(scale(d)⁸)                 minimise   CE(c) + 5·10⁻⁴ Σ σ(m)
    plus    messages × (1 − σ(z + logistic noise))      minimise  −CE(c) + mean KL(σ(z) ‖ 1 − sparsity)

where scale takes [min, max] to [0, 1], and z is d normalised over all pairs, (d − mean)/√(var + 10⁻⁵), times a learned
factor plus a learned offset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, layer_norm

Answer = Callable[[Tensor], Tensor]  # masks of the pairs [L, E₀ + N] to logits [1, C], differentiable


@dataclass(frozen=True, slots=True)
class Goal:
    """What the weights are learned for.

    Attributes:
        necessity: "plus" rather than "minus".
        label: the explained class.
        epochs: steps of Adam.
        sparsity: the share of pairs that "plus" is told to leave alone.
    """

    necessity: bool
    label: int
    epochs: int
    sparsity: float


def learned_weights(shares: Tensor, answer: Answer, goal: Goal) -> Tensor:
    """σ(m) [T] for shares A [L, E₀ + N, T].

    >>> _ = torch.manual_seed(0)
    >>> shares = torch.eye(2).unsqueeze(0)  # two pairs, each gone at a step of its own; the first one decides
    >>> answer = lambda masks: torch.stack([4 * masks[0, 0], torch.zeros(())]).unsqueeze(0)
    >>> first, second = learned_weights(shares, answer, Goal(True, label=0, epochs=100, sparsity=0.5)).tolist()
    >>> first > second
    True
    """
    m = (0.1 * torch.rand(shares.size(-1))).to(shares).requires_grad_()
    affine = torch.tensor([1.0, 0.0]).to(shares).requires_grad_()
    label = torch.tensor([goal.label])
    if goal.necessity:
        optimizer = torch.optim.Adam([m, affine], lr=0.1, weight_decay=1e-5)
    else:
        optimizer = torch.optim.Adam([m], lr=0.3)
    for _ in range(goal.epochs):
        pairs = shares @ m.sigmoid()
        if goal.necessity:
            logits = affine[0] * layer_norm(pairs, pairs.shape) + affine[1]
            removed = (logits + torch.rand_like(logits).clamp(1e-6, 1 - 1e-6).logit()).sigmoid()
            loss = _divergence(logits.sigmoid(), 1 - goal.sparsity) - cross_entropy(
                answer(1 - removed), label
            )
        else:
            kept = _scaled(_scaled(pairs) ** 8)
            loss = cross_entropy(answer(kept), label) + 5e-4 * m.sigmoid().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return m.detach().sigmoid()


def _scaled(values: Tensor) -> Tensor:
    """Shift and scale to [0, 1]."""
    low, high = values.aminmax()
    return (values - low) / (high - low + 1e-12)


def _divergence(p: Tensor, q: float) -> Tensor:
    """Mean Kullback–Leibler divergence of Bernoulli(p) from Bernoulli(q)."""
    p = p.clamp(1e-6, 1 - 1e-6)
    return (p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()).mean()
