"""Completeness error against the number of gradient evaluations (NFE), rule by rule.

    φ̂ = X ⊙ Σ_k w_k ∇f(τ_k X),        error = mean over graphs of |Σφ̂ − (f(X) − f(0))|

from the zero baseline, for the logit f of the predicted class; every step in the stated precision. `right`, `trapezoid`
and `simpson` share one grid of 256 intervals, of which coarser rules take every second, fourth, … point; the exact
attribution stands beside them with the gradients that it needs. Errors are absolute, in units of the logit. What they
are to be compared with is the scale of the sums that are rounded, kept beside them:

    S = Σ_vf |φ_vf| + |f(X)| + |f(0)|,        "at float precision" means error ≤ ROUNDING · ε · S

with ε the spacing of the numbers at 1. On PolyGIN the integrand Σφ̂ is a polynomial of degree 15 in τ, so 8
Gauss–Legendre points leave rounding alone; 7 leave the terms of degree 14 and 15, which weigh
(7!)⁴ / (15 (14!)²) ≈ 6·10⁻⁹ of their coefficients: beyond sight in float32, and in float64 only where θ is of order
one. The `generic` model has such θ.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from apexgnn.attribution import Attribution
from apexgnn.experiments.cells import Store, content
from apexgnn.experiments.subjects import Subject
from apexgnn.explain import attribute
from apexgnn.explain.question import pyg_call
from apexgnn.nn import PolyGIN
from apexgnn.path.quadrature import quadrature
from apexgnn.replicas import ROWS_PER_CALL, evaluate_copies

INTERVALS = (2, 4, 8, 16, 32, 64, 128, 256)
POINTS = (*range(1, 17), 32, 50)
GRAPHS, NODES = 10, 5  # graphs of a graph task, nodes of a node task
ROUNDING = 16.0
DTYPES = {"float32": torch.float32, "float64": torch.float64}
Errors = dict[str, dict[str, list[float]]]  # rule → NFE → one error per graph


def shares_along(model: nn.Module, graph: Data, taus: Tensor, *, target: int, index: int | None) -> Tensor:
    """[K, N, F], X ⊙ ∇f(τ_k X) at each τ, many points in one pass.

    >>> from apexgnn.nn import GIN
    >>> graph = Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0], [1]]))
    >>> shares_along(GIN(3, 2, hidden_channels=4), graph, torch.tensor([0.5]), target=0, index=None).shape
    torch.Size([1, 2, 3])
    """
    x, found = graph.x, []
    assert x is not None
    for part in torch.split(taus, max(1, ROWS_PER_CALL // len(x))):
        at = (part.view(-1, 1, 1) * x).requires_grad_()
        logits = evaluate_copies(
            partial(pyg_call(node_task=index is not None), model),
            graph,
            x=at,
            index=index,
            rows_per_call=at.size(0) * at.size(1),
        )
        found.append(torch.autograd.grad(logits[:, target].sum(), at)[0] * x)
    return torch.cat(found)


def errors(
    model: nn.Module, graph: Data, *, index: int | None = None
) -> tuple[dict[str, dict[int, float]], float]:
    """|Σφ̂ − (f(X) − f(0))| of every rule at every NFE on one graph, in the graph's precision, and the scale S.

    >>> _ = torch.manual_seed(0)
    >>> graph = Data(x=torch.rand(4, 3).double(), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    >>> found, scale = errors(PolyGIN(3, 2, hidden_channels=4).double().eval(), graph)
    >>> found["gauss-legendre"][8] < 1e-14 * scale < found["right"][256]
    True
    """
    assert graph.x is not None
    ends = torch.stack([graph.x, torch.zeros_like(graph.x)])
    with torch.no_grad():
        logits = evaluate_copies(
            partial(pyg_call(node_task=index is not None), model), graph, x=ends, index=index
        )
    target = int(logits[0].argmax())
    change = logits[0, target] - logits[1, target]
    along = partial(shares_along, model, graph, target=target, index=index)

    def error(weights: Any, shares: Tensor) -> float:
        phi = torch.einsum("k,knf->nf", torch.tensor(weights).to(shares), shares)
        return abs(float(phi.sum() - change))

    finest = INTERVALS[-1]
    grid = along(torch.linspace(0, 1, finest + 1, dtype=torch.float64).to(graph.x))
    found: dict[str, dict[int, float]] = {
        "right": {
            n: error(quadrature("right", n).weights, grid[finest // n :: finest // n]) for n in INTERVALS
        }
    }
    for name in ("trapezoid", "simpson"):
        found[name] = {n + 1: error(quadrature(name, n).weights, grid[:: finest // n]) for n in INTERVALS}
    found["gauss-legendre"] = {}
    for n in POINTS:
        rule = quadrature("gauss-legendre", n)
        shares = along(torch.tensor(rule.nodes).to(graph.x))
        found["gauss-legendre"][n] = error(rule.weights, shares)
    phi = torch.einsum("k,knf->nf", torch.tensor(rule.weights).to(shares), shares)
    scale = float(phi.abs().sum() + logits[0, target].abs() + logits[1, target].abs())
    if isinstance(model, PolyGIN):
        exact: Attribution = attribute(model, graph, target=target, index=index)
        found["exact"] = {exact.evaluations: abs(float(exact.residual))}
    return found, scale


def gathered(
    model: nn.Module, graphs: Sequence[Data], index: Sequence[int] | None, dtype: str
) -> dict[str, Any]:
    """The errors of many graphs, as a cell keeps them: {"errors": rule → NFE → per graph, "scale": per graph}."""
    cast = copy.deepcopy(model).to(DTYPES[dtype]).eval()
    table: Errors = {}
    scales = []
    for place, graph in enumerate(graphs):
        assert graph.x is not None
        one = Data(x=graph.x.to(DTYPES[dtype]), edge_index=graph.edge_index)
        found, scale = errors(cast, one, index=None if index is None else index[place])
        scales.append(scale)
        for rule, by_nfe in found.items():
            for nfe, error in by_nfe.items():
                table.setdefault(rule, {}).setdefault(str(nfe), []).append(error)
    return {"errors": table, "scale": scales}


def completeness_cell(store: Store, subject: Subject, kind: str, dtype: str) -> Mapping[str, Any]:
    """The errors of one model in one precision on the first graphs of its subject."""
    graphs = subject.graphs[: GRAPHS if subject.index is None else NODES]
    index = None if subject.index is None else subject.index[:NODES]
    key = {
        "what": "completeness",
        "model": subject.models[kind].sha256,
        "data": content(graphs, index),
        "dtype": dtype,
        "rules": [list(INTERVALS), list(POINTS)],
    }
    found: Mapping[str, Any] = store.cell(
        key, lambda: gathered(subject.models[kind].model, graphs, index, dtype)
    )
    return found


def generic(seed: int = 0) -> tuple[PolyGIN, list[Data]]:
    """A small PolyGIN with θ of order one, and graphs on which all its degrees matter.

    >>> model, graphs = generic()
    >>> sorted({float(p.detach()) for name, p in model.named_parameters() if "theta" in name}), len(graphs)
    ([1.0], 10)
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = PolyGIN(4, 2, hidden_channels=8, theta_init=1.0).double().eval()
    graphs = []
    for _ in range(GRAPHS):
        ends = torch.randint(8, (2, 12), generator=generator)
        x = torch.randn(8, 4, generator=generator, dtype=torch.float64) / 2
        graphs.append(Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1)))
    return model, graphs
