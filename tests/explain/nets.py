"""Models and graphs that the tests of attribution share."""

import torch
import torch_geometric.nn as gnn
from torch import nn
from torch_geometric.data import Batch, Data

from apexgnn.nn import PolyActivation, PolyGIN


def graph(nodes=12, width=5, edges=30, *, seed=0, dtype=torch.float64):
    source = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randn(nodes, width, generator=source, dtype=dtype),
        edge_index=torch.randint(0, nodes, (2, edges), generator=source),
    )


def batch(count=4, *, width=5, dtype=torch.float64):
    return Batch.from_data_list([graph(5 + k, width, 8 + 3 * k, seed=k, dtype=dtype) for k in range(count)])


def generic(model, *, theta=1.0, seed=0):
    """Weights of order one everywhere, so that no term of the polynomial is small by accident.

    The rows that come into a layer are kept at unit size by its scale, as a trained PolyGIN keeps them.
    """
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("theta"):
                signs = torch.randint(0, 2, parameter.shape, generator=source) * 2 - 1
                parameter.copy_(theta * signs)
            elif name.endswith("scale"):
                parameter.copy_(0.5 + torch.rand(parameter.shape, generator=source))
            elif parameter.dim() == 2:
                fan = parameter.size(1) ** 0.5
                parameter.copy_(torch.randn(parameter.shape, generator=source) / fan)
            else:
                parameter.copy_(torch.randn(parameter.shape, generator=source) / 3)
    return model


def poly_gin(width=5, classes=3, *, dtype=torch.float64, theta=1.0, seed=0, **options):
    options = {"hidden_channels": 8} | options
    return generic(PolyGIN(width, classes, **options), theta=theta, seed=seed).to(dtype).eval()


class Stack(nn.Module):
    """Two of PyTorch Geometric's own layers, with what people put between them."""

    def __init__(self, kind, width=5, *, pool=gnn.global_mean_pool, between=None, **options):
        super().__init__()
        self.first = self.layer(kind, width, 8, options)
        self.act = PolyActivation(8, init=0.7)
        self.second = self.layer(kind, 8, 8, options)
        self.between = between if between is not None else nn.Identity()
        self.pool = pool
        self.head = nn.Linear(8, 3)

    @staticmethod
    def layer(kind, a, b, options):
        if kind == "GINConv":
            block = nn.Sequential(nn.Linear(a, b), PolyActivation(init=0.5), nn.Linear(b, b))
            return gnn.GINConv(block, **options)
        return getattr(gnn, kind)(a, b, **options)

    def forward(self, x, edge_index, batch=None):
        x = self.act(self.first(x, edge_index))
        x = self.between(self.second(x, edge_index))
        x = x * x + 0.1 * x
        return self.head(x if self.pool is None else self.pool(x, batch))


class Reads(nn.Module):
    """A node model that passes x through any function before a linear layer."""

    def __init__(self, function, width=5):
        super().__init__()
        self.function = function
        self.lin = nn.Linear(width, 2).double()

    def forward(self, x, edge_index):
        return self.lin(self.function(x * x + x))


def score(model, data, target, index=None):
    """The explained score as a function of x, by a plain call."""

    def f(x):
        if index is not None:
            return model(x, data.edge_index)[index, target].reshape(1)
        owner = data.batch if data.batch is not None else torch.zeros(len(data.x), dtype=torch.long)
        out = model(x, data.edge_index, batch=owner)
        return out.gather(1, torch.as_tensor(target).expand(len(out)).reshape(-1, 1)).squeeze(1)

    return f


def reference(model, data, target, *, points, baseline=None, index=None):
    """(X − X′) ⊙ Σ w ∇f by Gauss–Legendre in plain autograd, one point after the other."""
    import numpy as np

    x = data.x
    start = torch.zeros_like(x) if baseline is None else baseline
    nodes, weights = np.polynomial.legendre.leggauss(points)
    mean = torch.zeros_like(x)
    for t, w in zip((nodes + 1) / 2, weights / 2, strict=True):
        point = (start + t * (x - start)).requires_grad_()
        (gradient,) = torch.autograd.grad(score(model, data, target, index)(point).sum(), point)
        mean += w * gradient
    return (x - start) * mean
