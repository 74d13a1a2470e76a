"""Fidelity⁺ and Fidelity⁻ against sparsity, in the paper's two comparisons.

    fidelity-plus, fidelity-minus   every method on its own architecture: APEX on PolyGIN, the peers on GIN
    disentangle                     all methods on the same PolyGIN

One row of the CSV is the mean over the graphs of one data set under one seed of the models, with the 95 % bootstrap
interval over these graphs. Both models of a seed classify all its graphs correctly. The curves are means over seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from apexgnn.experiments.bench import Bench, Laboratory, Report, fill, measured
from apexgnn.experiments.curves import Curve, panels
from apexgnn.experiments.lineup import LABELS, METHODS
from apexgnn.experiments.measures import Measured, protocol_of, stated
from apexgnn.experiments.tables import record, write_csv
from apexgnn.figures import save_figure
from apexgnn.metrics import bootstrap
from apexgnn.metrics.protocol import SPARSITIES

COLUMNS = ("dataset", "model", "method", "seed", "sparsity", "value", "low", "high", "graphs")
COMPARISONS = {"own": "each method on its own architecture", "polygin": "all methods on the same PolyGIN"}
DIRECTIONS = {"plus": "Fidelity⁺ (higher is better)", "minus": "Fidelity⁻ (lower is better)"}


def line_up(comparison: str) -> dict[str, str]:
    """Which model each method explains.

    >>> line_up("own")["apex"], line_up("own")["ig"], line_up("polygin")["ig"]
    ('polygin', 'gin', 'polygin')
    """
    return {m.name: "polygin" if m.exact or comparison == "polygin" else "gin" for m in METHODS.values()}


def rows(laboratory: Laboratory, comparison: str, direction: str) -> Iterator[dict[str, Any]]:
    """The rows of one CSV."""
    for dataset in laboratory.datasets:
        for method, kind in line_up(comparison).items():
            for seed in range(laboratory.field.seeds_of(dataset)):
                found = measured(laboratory, Bench(dataset, kind, seed), method)
                interval = bootstrap(torch.from_numpy(getattr(found, direction)))
                for k, sparsity in enumerate(SPARSITIES):
                    yield {
                        "dataset": dataset,
                        "model": kind,
                        "method": method,
                        "seed": seed,
                        "sparsity": sparsity,
                        "value": float(interval.mean[k]),
                        "low": float(interval.low[k]),
                        "high": float(interval.high[k]),
                        "graphs": interval.graphs,
                        "direction": direction,
                    }


def reproduce(laboratory: Laboratory, out: Path, which: str, *, report: Report = print) -> None:
    """Make "fidelity-plus", "fidelity-minus" or "disentangle": the CSV, the figure, the provenance."""
    fill(laboratory, report=report)
    comparison = "polygin" if which == "disentangle" else "own"
    directions = ("plus", "minus") if which == "disentangle" else (which.removeprefix("fidelity-"),)
    found = [row for direction in directions for row in rows(laboratory, comparison, direction)]
    columns = (*COLUMNS, "direction") if which == "disentangle" else COLUMNS
    write_csv(out / f"{which}.csv", columns, found)
    for direction in directions:
        suffix = f"-{direction}" if which == "disentangle" else ""
        draw(found, laboratory, direction, comparison, out / "figures" / f"{which}{suffix}")
    record(out / "provenance.json", which, settings(laboratory, found))
    report(f"{which}: {len(found)} rows in {out / f'{which}.csv'}")


def settings(laboratory: Laboratory, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The choices behind the rows."""
    return {
        "protocol": {name: stated(protocol_of(name)) for name in laboratory.datasets},
        "explainers": {name: repr(method.explainer()) for name, method in METHODS.items()},
        "explainers, where they differ": {
            f"{name} on {dataset}": repr(method.explainer(dataset))
            for name, method in METHODS.items()
            for dataset in method.costly
        },
        "model seeds": {name: laboratory.field.seeds_of(name) for name in laboratory.datasets},
        "graphs": {row["dataset"]: row["graphs"] for row in found},
        "graphs are": "the first test graphs, in an order drawn from seed 0, that both models of the seed get right",
    }


def draw(
    found: Sequence[Mapping[str, Any]], laboratory: Laboratory, direction: str, comparison: str, path: Path
) -> None:
    """One panel per data set, one curve per method: the mean over seeds; a band for APEX alone."""
    curves: dict[str, list[Curve]] = {name: [] for name in laboratory.datasets}
    for dataset in laboratory.datasets:
        for method in METHODS:
            mine = [
                row
                for row in found
                if (row["dataset"], row["method"], row["direction"]) == (dataset, method, direction)
            ]
            if mine:
                mean, low, high = (
                    np.array([row[name] for row in mine]).reshape(-1, len(SPARSITIES)).mean(0)
                    for name in ("value", "low", "high")
                )
                band = (low, high) if method == "apex" else None
                curves[dataset].append(Curve(method, LABELS[method], np.array(SPARSITIES), mean, band))
    figure = panels(
        curves,
        title=f"{DIRECTIONS[direction]}: {COMPARISONS[comparison]}",
        xlabel="sparsity: share of the nodes that are not selected",
        ylabel=f"Fidelity{'⁺' if direction == 'plus' else '⁻'}: change of the predicted class's probability",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in (".pdf", ".svg", ".png"):
        save_figure(figure, path.with_suffix(ending))


def stacked(
    laboratory: Laboratory, dataset: str, kind: str, method: str, *, ranking: str = "signed"
) -> list[Measured]:
    """What a method achieved, seed by seed."""
    return [
        measured(laboratory, Bench(dataset, kind, seed), method, ranking=ranking)
        for seed in range(laboratory.field.seeds_of(dataset))
    ]
