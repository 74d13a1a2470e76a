"""The mean gradient along a path, by polynomial arithmetic instead of quadrature.

On x(t) = c + t·e + δ every w_k is a polynomial in t of degree n = 2^(k−1), held by n + 1 planes (see `polynomial`).
A perturbation δ of the constant term of the input makes one of degree n − 1, so on the way back there are n planes:

    forward     w_{k+1} = (S u_k) M + biases on every plane,   u_k = w_k + w_k²/2,    y_k = 1 + w_k
    top         G = Σ_i ω_i f(τ_i):      ∂G/∂w_L(τ_i) = ω_i v ⊙ y_L(τ_i),    v the row of the explained output
    backward    ∂G/∂u_k = Sᵀ (∂G/∂w_{k+1} Mᵀ),                 ∂G/∂w_k = ∂G/∂u_k times y_k, in n planes
    end         ∂G/∂δ = S₁ᵀ (∂G/∂w_1 W₁)

with the 2^(L−1) Gauss–Legendre points at the top, after pooling, where they cost one row per graph and not per node.
From a zero baseline coefficients 0 and 1 are thin (see `fold`), and by the same identities read backward so is
coefficient 0 of the adjoint. Three layers then take 1 + 3 products of full width with one row per node on the
way forward and 3 + 1 on the way back, fewer than the 5 + 5 of one ordinary gradient.

Rows are worked on in blocks that fit the cache. Between blocks only what the sums S need exists for all rows: u on
the way forward, ∂G/∂(S u) on the way back, and the full planes of w, from which y is rebuilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.explain.fused.fold import Folded, Stage
from apexgnn.explain.fused.operators import Neighbours, Readout, Rows
from apexgnn.explain.fused.polynomial import LONGEST, activate, by_values, narrow, pull_back, widen
from apexgnn.explain.fused.scores import Scores, differentiate_scores
from apexgnn.explain.fused.thin import Thin
from apexgnn.explain.fused.workspace import Workspace


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """x(t) = origin + t · direction for t from `start` to 1; `origin` is None for the path from zero."""

    origin: Tensor | None
    direction: Tensor

    @property
    def start(self) -> int:
        """0 from a zero baseline; −1 otherwise, as powers of t are better conditioned about the middle."""
        return 0 if self.origin is None else -1


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
        scores, grad = differentiate_scores(self.folded, self._forward(), target)
        matrix = self.stages[-1].matrix.t()
        product = _product(grad, matrix, out=grad.new_empty(*grad.shape[:2], matrix.size(1)))
        return self._backward(product), scores

    def _forward(self) -> Tensor:
        """w of the last stage at the Gauss–Legendre points, at τ = 1 and at τ = 0."""
        path, last = self.path, self.stages[-1]
        u = path.direction.unsqueeze(0) if path.origin is None else torch.stack([path.origin, path.direction])
        pooled: Tensor | None = None
        for k, blocks in enumerate(self.blocks):
            self._add_features(k, u)
            after = None
            if k + 1 < len(self.blocks):
                shape = (self._planes_of_u(k), blocks[-1][1], len(self.stages[k + 1].matrix))
                after = self.space.take(f"u{k}", shape)
            for block in blocks:
                w = self._lift(k, u, block)
                room = self.space.take("u", (self._planes_of_u(k), *w.shape[1:])) if after is None else after
                part = self._activate(k, w, room if after is None else room[:, slice(*block)])
                if after is None:
                    part = self.readout(part)
                    pooled = part if pooled is None else pooled.add_(part)
            u = u if after is None else after
        assert pooled is not None
        w = _product(pooled, last.matrix, out=pooled.new_empty(*pooled.shape[:2], last.matrix.size(1)))
        return w.add_(_bias(self.readout(w.new_ones(1, self.blocks[-1][-1][1], 1))[0], last))

    def _backward(self, product: Tensor) -> Tensor:
        """∂G/∂δ from the planes of ∂G/∂(S_L u)."""
        incoming: Tensor | None = None
        for k in range(len(self.blocks) - 1, -1, -1):
            stage, lowest, thin = self.stages[k], self.thin[k] // 2, self.thin[k] == 2 or k == 0
            rows = self.blocks[k][-1][1]
            after = self.space.take(f"u{k - 1}", (2**k - lowest, rows, len(stage.matrix))) if k else product
            linear = product.new_empty(rows, len(stage.linear)) if thin else None
            for block in self.blocks[k]:
                if k + 1 == len(self.blocks):
                    pulled = self.readout.transpose(product)
                else:
                    pulled = self.layers[k + 1].transpose(product, block)
                grad = self._pull_back(k, pulled, block)
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

    def _planes_of_u(self, k: int) -> int:
        count = 2 ** (k + 1) + 1
        return (
            count + (k + 1 == len(self.blocks))
            if by_values(k, len(self.blocks))
            else count - self.thin[k + 1]
        )

    def _lift(self, k: int, u: Tensor, block: Rows) -> Tensor:
        """The planes of w_k in these rows."""
        stage, lowest = self.stages[k], self.thin[k]
        w = self._room(k, block)
        if lowest < len(w):
            _product(self.layers[k](u, block), stage.matrix, out=w[lowest:])
        if lowest == 0:
            constant = w if 2**k > LONGEST else w[:1]
            constant += _bias(self.layers[k](w.new_ones(1, u.size(1), 1), block)[0], stage)
        self._fill_thin(k, w, block)
        if len(self.blocks[k]) > 1:
            self._kept(k)[:, slice(*block)] = w[lowest:]
        return w

    def _activate(self, k: int, w: Tensor, out: Tensor) -> Tensor:
        """u_k from w_k; what the way back needs of it stays in the workspace."""
        if not by_values(k, len(self.blocks)):
            return activate(w, lowest=self.thin[k + 1], out=out)
        values = self._values(k, w)
        return torch.addcmul(values, values, values, value=0.5, out=out)

    def _values(self, k: int, w: Tensor) -> Tensor:
        last = k + 1 == len(self.blocks)
        matrix = widen(2**k, start=self.path.start, ends=last, dtype=w.dtype)
        values = self.space.take(f"s{k}" if len(self.blocks[k]) == 1 else "s", (len(matrix), *w.shape[1:]))
        torch.mm(matrix, w.view(len(w), -1), out=values.view(len(values), -1))
        return values

    def _pull_back(self, k: int, pulled: Tensor, block: Rows) -> Tensor:
        """The planes of ∂G/∂w_k from those of ∂G/∂u_k."""
        w, single = self._room(k, block), len(self.blocks[k]) == 1
        if not single:
            w[self.thin[k] :] = self._kept(k)[:, slice(*block)]
            self._fill_thin(k, w, block)
        grad = self.space.take("grad", (len(w) - 1, *w.shape[1:]))
        if not by_values(k, len(self.blocks)):
            if not single:
                w[0] += 1
            return pull_back(pulled, w, lowest=self.thin[k + 1] // 2, out=grad)
        kept = self.space.take(f"s{k}", (self._planes_of_u(k), *w.shape[1:])) if single else None
        values = self._values(k, w) if kept is None else kept
        degree = 2 ** (k + 1)
        product = self.space.take("u", (degree, *w.shape[1:]))
        torch.addcmul(pulled, pulled, values[:degree], out=product)
        matrix = narrow(2**k, start=self.path.start, dtype=w.dtype)
        torch.mm(matrix, product.view(degree, -1), out=grad.view(len(grad), -1))
        return grad

    def _room(self, k: int, block: Rows) -> Tensor:
        name = f"y{k}" if len(self.blocks[k]) == 1 else "y"
        return self.space.take(name, (2**k + 1, block[1] - block[0], self.stages[k].matrix.size(1)))

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


def _bias(inflow: Tensor, stage: Stage) -> Tensor:
    """1 ⊗ b + inflow ⊗ d."""
    return torch.addmm(stage.bias[0], inflow, stage.bias[1:])
