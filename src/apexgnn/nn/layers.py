"""The polynomial building blocks.

    PolyActivation     σ(z) = z + θ ⊙ z²
    PolyScaleNorm      Norm(z) = s ⊙ z (+ b)
    PolyGINConv        h_v = W₂ σ(Norm(W₁ a_v)) (+ h_v),   a_v = (1 + ε) h_v + Σ_{u∈N(v)} w_uv h_u

Each keeps polynomials polynomial: everything is linear but σ, which doubles the degree.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from apexgnn.aggregation import Adjacency, aggregate
from apexgnn.errors import InputError


class PolyActivation(nn.Module):
    """σ(z) = z + θ ⊙ z², with one θ for all channels or one for each.

    Args:
        channels: None for a scalar θ, or the number of channels for one θ each.
        init: where θ starts.

    >>> PolyActivation(init=0.5)(torch.tensor([2.0])).item()
    4.0
    """

    def __init__(self, channels: int | None = None, *, init: float = 0.1) -> None:
        super().__init__()
        self.init = init
        self.theta = nn.Parameter(torch.empty(() if channels is None else (channels,)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Put θ back to where it starts."""
        nn.init.constant_(self.theta, self.init)

    def forward(self, z: Tensor) -> Tensor:
        """Apply σ element-wise."""
        return z + self.theta * z.square()

    def extra_repr(self) -> str:
        """Say which θ this is."""
        return f"theta={'per channel' if self.theta.dim() else 'scalar'}"


class PolyScaleNorm(nn.Module):
    """Norm(z) = s ⊙ z, a learned scale per channel (and a bias, where asked for).

    >>> PolyScaleNorm(2)(torch.tensor([[3.0, 4.0]])).tolist()
    [[3.0, 4.0]]
    """

    def __init__(self, channels: int, *, bias: bool = False) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels)) if bias else None

    def reset_parameters(self) -> None:
        """Put s back to one and the bias to zero."""
        nn.init.ones_(self.scale)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, z: Tensor) -> Tensor:
        """Scale every channel."""
        scaled = z * self.scale
        return scaled if self.bias is None else scaled + self.bias


class PolyGINConv(nn.Module):
    """One PolyGIN layer: aggregate, W₁, scale, σ, W₂.

    Args:
        in_channels: width of the rows that come in.
        out_channels: width of the rows that go out, and of the layer inside.
        eps: ε, the extra weight of the node itself.
        train_eps: learn ε.
        theta: "scalar" or "channel".
        theta_init: where θ starts.
        residual: add h_v itself to what comes out; the degree stays, as it is at least that of h_v.

    A self-loop in `edge_index` adds h_v once more, beside (1 + ε).

    >>> PolyGINConv(3, 4)(torch.ones(2, 3), torch.tensor([[0], [1]])).shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        eps: float = 0.0,
        train_eps: bool = False,
        theta: str = "scalar",
        theta_init: float = 0.1,
        residual: bool = False,
    ) -> None:
        super().__init__()
        if residual and in_channels != out_channels:
            widths = f"{in_channels} channels in and {out_channels} out"
            raise InputError("residual", got=widths, expected="as many in as out")
        self.residual = residual
        self.lin1 = nn.Linear(in_channels, out_channels)
        self.norm = PolyScaleNorm(out_channels)
        self.act = PolyActivation(out_channels if theta == "channel" else None, init=theta_init)
        self.lin2 = nn.Linear(out_channels, out_channels)
        self.initial_eps = eps
        if train_eps:
            self.eps = nn.Parameter(torch.empty(()))
        else:
            self.register_buffer("eps", torch.empty(()))
        nn.init.constant_(self.eps, eps)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for part in (self.lin1, self.norm, self.act, self.lin2):
            part.reset_parameters()
        nn.init.constant_(self.eps, self.initial_eps)

    def forward(self, x: Tensor, edge_index: Tensor | Adjacency, edge_weight: Tensor | None = None) -> Tensor:
        """Rows [N, in] to rows [N, out]."""
        a = (1 + self.eps) * x + aggregate(x, edge_index, edge_weight)
        h: Tensor = self.lin2(self.act(self.norm(self.lin1(a))))
        return h + x if self.residual else h
