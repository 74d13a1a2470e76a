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

Rows are worked on in blocks that fit the cache. Between blocks only what the sums S need exists for all rows: u on
the way forward, ∂G/∂(S u) on the way back, and the full planes of w, from which y is rebuilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from apexgnn.explain.fused.fold import Folded
from apexgnn.explain.fused.operators import Neighbours, Readout, Rows
from apexgnn.explain.fused.polynomial import activate, moments, pull_back
from apexgnn.explain.fused.thin import Thin
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
    """The explained column of every score, and its value at both ends of the path."""

    target: Tensor
    end: Tensor
    start: Tensor


class Pass:
    """One way forward and back over one piece of a batch.

    Args:
        folded: a model of L stages.
        layers: S₁ … S_{L−1}.
        readout: S_L; unless it is of a single graph, all rows must fit one block.
        path: the rows [N, F] of the input.
        space: where the planes live.
        block: how many rows are worked on at a time.
    """

    def __init__(
        self,
        folded: Folded,
        layers: Sequence[Neighbours],
        readout: Readout,
        *,
        path: Path,
        space: Workspace,
        block: int,
    ) -> None:
        self.folded, self.stages = folded, folded.stages
        self.layers, self.readout, self.path, self.space = layers, readout, path, space
        self.thin = [stage.thin if path.origin is None else 0 for stage in folded.stages]
        self.features: list[Thin] = []
        self.blocks = [_blocks(len(layer.along.start), block) for layer in layers]

    def mean_gradient(self, target: Tensor | None) -> tuple[Tensor, Scores]:
        """∂G/∂δ of the sum of the scores, [N, F], and the scores.

        Args:
            target: the explained column of every score; None for the predicted class.
        """
        w = self._forward()
        scores, grad = _top(self.folded, w, self.path.start, target)
        matrix = self.stages[-1].matrix
        return self._backward(
            _product(grad, matrix.t(), out=grad.new_empty(*grad.shape[:2], len(matrix)))
        ), scores

    def _forward(self) -> Tensor:
        """The planes of w of the last stage."""
        path, last = self.path, self.stages[-1]
        u = path.direction.unsqueeze(0) if path.origin is None else torch.stack([path.origin, path.direction])
        pooled: Tensor | None = None
        for k, blocks in enumerate(self.blocks):
            self._add_features(k, u)
            lowest, channels = self.thin[k + 1], len(self.stages[k + 1].matrix)
            planes, rows = 2 ** (k + 1) + 1 - lowest, blocks[-1][1]
            after = self.space.take(f"u{k}", (planes, rows, channels)) if k + 1 < len(self.blocks) else None
            for block in blocks:
                w = self._lift(k, u, block)
                if after is not None:
                    activate(w, lowest=lowest, out=after[:, slice(*block)])
                else:
                    room = self.space.take("u", (planes, *w.shape[1:]))
                    part = self.readout(activate(w, lowest=lowest, out=room))
                    pooled = part if pooled is None else pooled.add_(part)
            u = u if after is None else after
        assert pooled is not None
        w = _product(pooled, last.matrix, out=pooled.new_empty(*pooled.shape[:2], last.matrix.size(1)))
        _add_bias(w[0], self.readout(w.new_ones(1, self.blocks[-1][-1][1], 1))[0], last.bias)
        return w

    def _backward(self, product: Tensor) -> Tensor:
        """∂G/∂δ from the planes of ∂G/∂(S_L u)."""
        incoming: Tensor | None = None
        for k in range(len(self.blocks) - 1, -1, -1):
            stage, lowest, thin = self.stages[k], self.thin[k] // 2, self.thin[k] == 2 or k == 0
            rows = self.blocks[k][-1][1]
            after = self.space.take(f"u{k - 1}", (2**k - lowest, rows, len(stage.matrix))) if k else product
            linear = product.new_empty(rows, len(stage.linear)) if thin else None
            for block in self.blocks[k]:
                last = k + 1 == len(self.blocks)
                pulled = (
                    self.readout.transpose(product) if last else self.layers[k + 1].transpose(product, block)
                )
                y = self._derivative(k, block)
                room = self.space.take("grad", (len(y) - 1, *y.shape[1:]))
                grad = pull_back(pulled, y, lowest=self.thin[k + 1] // 2, out=room)
                if linear is not None:
                    torch.mm(grad[0], stage.linear.t(), out=linear[slice(*block)])
                if k:
                    _product(grad[lowest:], stage.matrix.t(), out=after[:, slice(*block)])
            if linear is not None:
                linear = linear if incoming is None else linear.add_(incoming)
                linear = self.layers[k].transpose(linear.unsqueeze(0))[0]
                incoming = self.features[k - 1].pull_back(linear) if k else linear
            product = after
        assert incoming is not None
        return incoming

    def _add_features(self, k: int, u: Tensor) -> None:
        if k > 0:
            self.features.append(self.features[-1].next(self.layers[k], self.thin[k]))
        elif self.thin[0] == 2:
            linear = self.layers[0](u)[0]
            self.features.append(Thin(linear.new_ones(len(linear), 1), linear))
        else:
            self.features.append(Thin())

    def _lift(self, k: int, u: Tensor, block: Rows) -> Tensor:
        """The planes of w_k in these rows."""
        stage, lowest, single = self.stages[k], self.thin[k], len(self.blocks[k]) == 1
        shape = (2**k + 1, block[1] - block[0], stage.matrix.size(1))
        w = self.space.take(f"y{k}" if single else "y", shape)
        if lowest < len(w):
            _product(self.layers[k](u, block), stage.matrix, out=w[lowest:])
        if lowest == 0:
            ones = w.new_ones(1, u.size(1), 1)
            _add_bias(w[0], self.layers[k](ones, block)[0], stage.bias)
        self._fill_thin(k, w, block)
        if not single:
            self._kept(k)[:, slice(*block)] = w[lowest:]
        return w

    def _derivative(self, k: int, block: Rows) -> Tensor:
        """The planes of y_k in these rows: still there, or rebuilt."""
        shape = (2**k + 1, block[1] - block[0], self.stages[k].matrix.size(1))
        if len(self.blocks[k]) == 1:
            return self.space.take(f"y{k}", shape)
        y = self.space.take("y", shape)
        y[self.thin[k] :] = self._kept(k)[:, slice(*block)]
        self._fill_thin(k, y, block)
        y[0] += 1
        return y

    def _kept(self, k: int) -> Tensor:
        planes, rows = 2**k + 1 - self.thin[k], self.blocks[k][-1][1]
        return self.space.take(f"w{k}", (planes, rows, self.stages[k].matrix.size(1)))

    def _fill_thin(self, k: int, w: Tensor, block: Rows) -> None:
        """w[0] and w[1] from their thin features, as far as they have any."""
        thin, rows = self.features[k], slice(*block)
        if thin.constant is not None:
            torch.mm(thin.constant[rows], self.stages[k].constant, out=w[0])
        if thin.linear is not None:
            torch.mm(thin.linear[rows], self.stages[k].linear, out=w[1])


def _blocks(rows: int, size: int) -> list[Rows]:
    count = max(1, -(-rows // size))
    return [(i * rows // count, (i + 1) * rows // count) for i in range(count)]


def _product(planes: Tensor, matrix: Tensor, *, out: Tensor) -> Tensor:
    """Every plane times the matrix."""
    if planes.is_contiguous() and out.is_contiguous():
        torch.mm(planes.view(-1, planes.size(-1)), matrix, out=out.view(-1, out.size(-1)))
    else:
        for plane, place in zip(planes, out, strict=True):
            torch.mm(plane, matrix, out=place)
    return out


def _add_bias(w: Tensor, inflow: Tensor, bias: Tensor) -> None:
    """w += 1 ⊗ b + inflow ⊗ d."""
    w.addmm_(torch.cat([torch.ones_like(inflow), inflow], dim=1), bias)


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
