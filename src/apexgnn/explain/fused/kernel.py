"""The mean gradient along a path, by polynomial arithmetic instead of quadrature.

On x(t) = c + t·e + δ every w_k is a polynomial in t of degree n = 2^(k−1), held by its coefficients. A perturbation δ
of coefficient 0 of the input reaches coefficients 0 … n − 1 of w_k, so on the way back only those are carried:

    forward     w_{k+1}[c] = (S u_k[c]) M (+ biases for c = 0),   u_k = w_k + w_k²/2,       y_k = 1 + w_k
    top         G = ∫ f dt:    ∂G/∂w_L[j] = v ⊙ Σ_c y_L[c] ∫ t^(j+c) dt,      v the row of the explained output
    backward    ∂G/∂u_k[c] = Sᵀ (∂G/∂w_{k+1}[c] Mᵀ),              ∂G/∂w_k[j] = Σ_c ∂G/∂u_k[j + c] ⊙ y_k[c]
    end         ∂G/∂δ = S₁ᵀ (∂G/∂w_1[0] W₁)

From a zero baseline coefficients 0 and 1 are thin (see `fold`), and by the same identities read backward so is
coefficient 0 of the adjoint. Three layers then take 1 + 3 products of full width with one row per node on the
way forward and 3 + 1 on the way back, fewer than the 5 + 5 of one ordinary gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from apexgnn.explain.fused.fold import Folded, Stage
from apexgnn.explain.fused.operators import Operator
from apexgnn.explain.fused.polynomial import activate, moments, pull_back
from apexgnn.explain.fused.workspace import Workspace

_moments = lru_cache(maxsize=64)(moments)


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """x(t) = origin + t · direction for t from `start` to 1; `origin` is None for the path from zero."""

    origin: Tensor | None
    direction: Tensor

    @property
    def start(self) -> int:
        """0 from a zero baseline; −1 otherwise, as powers of t are better conditioned about the middle."""
        return 0 if self.origin is None else -1


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Of every graph: the column explained and its value at both ends of the path."""

    target: Tensor
    end: Tensor
    start: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class _Thin:
    """Node features of the two lowest coefficients, w[0] = PA and w[1] = RB, as far as they are thin."""

    constant: Tensor | None = None
    linear: Tensor | None = None

    def next(self, operator: Operator, thin: int) -> _Thin:
        """P and R of the next stage."""
        p, r, linear = self.constant, self.linear, None
        if thin == 0 or p is None:
            return _Thin()
        products = (
            p * p if p.size(1) == 1 else torch.cat([p[:, i:] * p[:, i : i + 1] for i in range(p.size(1))], 1)
        )
        products = operator(products.unsqueeze(0))[0]
        constant = torch.cat([products.new_ones(len(products), 1), products], dim=1)
        if thin == 2 and r is not None:
            linear = operator(
                (r if p.size(1) == 1 else (p[:, :, None] * r[:, None]).flatten(1)).unsqueeze(0)
            )[0]
        return _Thin(constant, linear)

    def pull_back(self, grad: Tensor) -> Tensor:
        """The gradient in R from that in P ⊗ R."""
        p = self.constant
        if p is None or p.size(1) == 1:
            return grad
        return (grad.view(len(p), p.size(1), -1) * p[:, :, None]).sum(dim=1)


def mean_gradient(
    folded: Folded, operators: Sequence[Operator], path: Path, target: Tensor | None, space: Workspace
) -> tuple[Tensor, Scores]:
    """∂G/∂δ of the sum of the scores, [N, F], and the scores.

    Args:
        folded: a model of L stages.
        operators: S₁ … S_L; the last is the readout.
        path: the rows [N, F] of the input.
        target: [G], the explained column; None for the predicted class.
        space: where the planes live.
    """
    thin = [stage.thin if path.origin is None else 0 for stage in folded.stages]
    features, planes = _forward(folded.stages, operators, path, thin, space)
    scores, grad = _top(folded, planes[-1], path.start, target)
    linear: Tensor | None = None
    for k in range(len(thin) - 1, -1, -1):
        stage, operator, lowest = folded.stages[k], operators[k], thin[k] // 2
        if lowest or k == 0:
            own = torch.mm(grad[0], stage.linear.t())
            linear = operator.transpose((own if linear is None else own.add_(linear)).unsqueeze(0))[0]
        if k > 0:
            if linear is not None:
                linear = features[k - 1].pull_back(linear)
            product = space.take("product", (len(grad) - lowest, grad.size(1), len(stage.matrix)))
            _product(grad[lowest:], stage.matrix.t(), out=product)
            y = planes[k - 1]
            out = space.take("grad", (len(y) - 1, *y.shape[1:]))
            grad = pull_back(operator.transpose(product), y, lowest=lowest, out=out)
    return linear, scores


def _forward(
    stages: Sequence[Stage], operators: Sequence[Operator], path: Path, thin: Sequence[int], space: Workspace
) -> tuple[list[_Thin], list[Tensor]]:
    """The thin features of all stages, and their planes: y of all but the last, whose w is left as it is."""
    features, planes = [], []
    u = path.direction.unsqueeze(0) if path.origin is None else torch.stack([path.origin, path.direction])
    for k, (stage, operator) in enumerate(zip(stages, operators, strict=True)):
        rows = operator(u)
        w = space.take(f"y{k}", (2**k + 1, rows.size(1), stage.matrix.size(1)))
        if k > 0:
            features.append(features[-1].next(operator, thin[k]))
            _product(rows, stage.matrix, out=w[thin[k] :])
        elif thin[0] == 2:
            features.append(_Thin(rows.new_ones(rows.size(1), 1), rows[0]))
        else:
            features.append(_Thin())
            _product(rows, stage.matrix, out=w)
        _lowest_planes(w, stage, features[-1], operator, sources=u.size(1))
        planes.append(w)
        if k + 1 < len(stages):
            out = space.take("u", (2 ** (k + 1) + 1 - thin[k + 1], *w.shape[1:]))
            u = activate(w, lowest=thin[k + 1], out=out)
    return features, planes


def _lowest_planes(w: Tensor, stage: Stage, thin: _Thin, operator: Operator, *, sources: int) -> None:
    """w[0] and w[1] from their thin features, as far as they have any; else the biases of w[0]."""
    if thin.constant is None:
        inflow = operator(w.new_ones(1, sources, 1))[0]
        w[0].addmm_(torch.cat([torch.ones_like(inflow), inflow], dim=1), stage.bias)
    else:
        torch.mm(thin.constant, stage.constant, out=w[0])
    if thin.linear is not None:
        torch.mm(thin.linear, stage.linear, out=w[1])


def _product(planes: Tensor, matrix: Tensor, *, out: Tensor) -> None:
    torch.mm(planes.view(-1, planes.size(-1)), matrix, out=out.view(-1, out.size(-1)))


def _top(folded: Folded, w: Tensor, start: int, target: Tensor | None) -> tuple[Scores, Tensor]:
    """The scores, and the adjoint of the last stage; w becomes y."""
    first = w[0] if start == 0 else w[0::2].sum(dim=0) - w[1::2].sum(dim=0)
    ends = torch.stack([w.sum(dim=0), first])
    ends += ends * ends / 2
    logits = ends @ folded.weight.t() + folded.bias
    if target is None:
        target = logits[0].argmax(dim=1)
    end, begin = logits.gather(2, target.expand(2, -1).unsqueeze(2)).squeeze(2)
    w[0] += 1
    n = len(w) - 1
    grad = torch.mm(_moments(n, n + 1, start=start, dtype=w.dtype), w.flatten(1)).view(n, *w.shape[1:])
    return Scores(target, end, begin), grad.mul_(folded.weight[target])
