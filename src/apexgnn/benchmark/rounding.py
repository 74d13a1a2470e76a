"""Rounding in float32: our error and that of 8-point Gauss–Legendre, both against float64.

Both add up numbers of either sign, in another order each; an error is ‖φ₃₂ − φ₆₄‖ / ‖φ₆₄‖ over a batch. Models are
drawn anew each time, for mean and sum readout, from the baseline zero and from another one.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from apexgnn.benchmark.contenders import Foreign, error, frozen, gauss, gradient
from apexgnn.benchmark.molecules import Graphs, alike
from apexgnn.benchmark.part import Claim, Part, Record, Say, Settings, table
from apexgnn.explain import attribute
from apexgnn.nn import PolyGIN

FUSED, ENGINE, QUADRATURE = "attribute", "attribute, PathTensor engine", "Gauss–Legendre 8"
GRAPHS = 8


def measure(settings: Settings, say: Say) -> Record:
    """Errors of many models, by readout and baseline."""
    cases: list[dict[str, Any]] = []
    for readout in ("mean", "sum"):
        for start in ("zero", "one half"):
            errors: dict[str, list[float]] = {FUSED: [], ENGINE: [], QUADRATURE: []}
            for seed in range(settings.pick(25, 2)):
                for way, value in _errors(settings.seed + seed, readout, start).items():
                    errors[way].append(value)
            cases.append({"readout": readout, "baseline": start, "errors": errors})
            say(f"{readout} readout, baseline {start}: {len(errors[FUSED])} models")
    return {"graphs": GRAPHS, "cases": cases}


def _errors(seed: int, readout: str, start: str) -> dict[str, float]:
    torch.manual_seed(seed)
    model = PolyGIN(14, 2, readout=readout).eval()
    graphs = Graphs.joined(alike(GRAPHS, seed=seed))
    target = model(*graphs[:3]).argmax(dim=1)
    baseline = torch.zeros_like(graphs.x) if start == "zero" else torch.full_like(graphs.x, 0.5)
    truth = _along(frozen(model).double(), graphs.double(), target, baseline.double())
    found = {
        FUSED: _ours(model, graphs.data, target, baseline),
        ENGINE: _ours(Foreign(model).eval(), graphs.data, target, baseline),
        QUADRATURE: _along(frozen(model), graphs, target, baseline),
    }
    return {way: error(shares, truth) for way, shares in found.items()}


def _ours(model: nn.Module, data: Data, target: Tensor, baseline: Tensor) -> Tensor:
    shares = attribute(model, data, target=target, baseline=baseline).features
    assert shares is not None
    return shares


def _along(model: nn.Module, graphs: Graphs, target: Tensor, baseline: Tensor) -> Tensor:
    """8-point Gauss–Legendre from any baseline."""
    way, rule = graphs.x - baseline, gauss(8)
    total = torch.zeros_like(way)
    for tau, weight in zip(rule.nodes.tolist(), rule.weights.tolist(), strict=True):
        total.add_(gradient(model, graphs._replace(x=baseline + tau * way), target), alpha=weight)
    return way * total


def _ratios(case: Record, way: str) -> list[float]:
    pairs = zip(case["errors"][way], case["errors"][QUADRATURE], strict=True)
    return [mine / other for mine, other in pairs]


def claims(record: Record) -> list[Claim]:
    """The single worst model of all, for each engine."""
    found = []
    for way in (FUSED, ENGINE):
        worst = max(max(_ratios(case, way)) for case in record["cases"])
        models = sum(len(case["errors"][way]) for case in record["cases"])
        text = f"float32 error of {way} over that of Gauss–Legendre 8, the worst of {models} models"
        found.append(Claim(text, worst, 4.0))
    return found


def text(record: Record) -> str:
    """Median errors, and the median and worst ratio to quadrature of the same model."""
    header = ["readout", "baseline", *(f"error of {w}" for w in (FUSED, ENGINE, QUADRATURE))]
    header += [f"{w} / quadrature: median, worst" for w in (FUSED, ENGINE)]
    rows = []
    for case in record["cases"]:
        errors = [f"{median(case['errors'][way]):.1e}" for way in (FUSED, ENGINE, QUADRATURE)]
        ratios = [_ratios(case, way) for way in (FUSED, ENGINE)]
        rows.append(
            [case["readout"], case["baseline"], *errors, *(f"{median(r):.2f}, {max(r):.2f}" for r in ratios)]
        )
    return (
        f"Relative error in float32 against float64, ‖φ₃₂ − φ₆₄‖ / ‖φ₆₄‖ over {record['graphs']} graphs; "
        f"{len(record['cases'][0]['errors'][FUSED])} models in each row, drawn anew.\n\n"
        + table(header, rows)
    )


PART = Part("rounding", "Rounding in float32", measure, text, claims)
