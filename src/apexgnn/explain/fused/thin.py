"""The thin coefficients: node features whose products with folded rows are w[0] and w[1] (see `fold`).

    P_{k+1} = [1, S (P_k ⊗ P_k)]         R_{k+1} = S (P_k ⊗ R_k)

The first is symmetric, so only the products P_i P_j with i ≤ j are formed, and the first of them is P_0² = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.explain.fused.operators import Neighbours


@dataclass(frozen=True, slots=True, eq=False)
class Thin:
    """P [N, p] and R [N, r] of one stage, as far as its coefficients are thin.

    >>> Thin(torch.ones(2, 1), torch.ones(2, 3)).pull_back(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """

    constant: Tensor | None = None
    linear: Tensor | None = None

    def next(self, neighbours: Neighbours, thin: int) -> Thin:
        """P and R of the next stage, for as many coefficients as are thin there."""
        p, r, linear = self.constant, self.linear, None
        if thin == 0 or p is None:
            return Thin()
        products = torch.cat([p[:, i:] * p[:, i : i + 1] for i in range(p.size(1))], dim=1)
        sums = neighbours(products.unsqueeze(0))[0]
        constant = torch.cat([sums.new_ones(len(sums), 1), sums], dim=1)
        if thin == 2 and r is not None:
            linear = neighbours((p[:, :, None] * r[:, None]).flatten(1).unsqueeze(0))[0]
        return Thin(constant, linear)

    def pull_back(self, grad: Tensor) -> Tensor:
        """∂G/∂R from ∂G/∂(P ⊗ R)."""
        p = self.constant
        if p is None or p.size(1) == 1:
            return grad
        return (grad.view(len(p), p.size(1), -1) * p[:, :, None]).sum(dim=1)
