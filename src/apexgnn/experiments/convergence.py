"""How fast each rule closes the completeness error, and with how many points a trained model is at float precision.

    order      −p of the straight line through (log n, log error), n intervals, over n = 16 … 256, as long as the error
               is above a hundred roundings: 1, 2 and 4 are the theory for a right Riemann sum, trapezoid and Simpson
    points     the least n from which on every Gauss–Legendre rule up to 16 points is at float precision; none where
               16 points are not

One row of `completeness.csv` is a mean over graphs and over the seeds of the model; orders and points are per seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from apexgnn.experiments.bench import Bench, Laboratory, Report, subject_of
from apexgnn.experiments.cells import Store
from apexgnn.experiments.completeness import (
    DTYPES,
    GRAPHS,
    INTERVALS,
    NODES,
    POINTS,
    ROUNDING,
    completeness_cell,
    gathered,
    generic,
)
from apexgnn.experiments.curves import TITLES, Curve, panels
from apexgnn.experiments.progress import Progress
from apexgnn.experiments.tables import record, write_csv
from apexgnn.figures import save_figure
from apexgnn.training.recipes import MODELS

COLUMNS = ("dataset", "model", "rule", "dtype", "nfe", "error")
SUMMARY = (
    *("dataset", "model", "dtype", "seed", "graphs", "scale", "precision", "points", "exact"),
    *("order_right", "order_trapezoid", "order_simpson"),
)
RULES = ("right", "trapezoid", "simpson")
GENERIC = "generic"
STYLES: dict[str, dict[str, Any]] = {
    "right": {"color": "#D55E00", "marker": "s", "ls": "-", "lw": 1.3},
    "trapezoid": {"color": "#E69F00", "marker": "^", "ls": "-", "lw": 1.3},
    "simpson": {"color": "#009E73", "marker": "D", "ls": "-", "lw": 1.3},
    "gauss-legendre": {"color": "#0072B2", "marker": "o", "ls": "-", "lw": 2.0, "zorder": 8},
    "exact": {"color": "#000000", "marker": "*", "ls": "", "ms": 13, "zorder": 9},
    "precision": {"color": "#5f6368", "marker": "", "ls": ":", "lw": 1.2},
}
NAMES = {
    "right": "Riemann (right)",
    "trapezoid": "trapezoid",
    "simpson": "Simpson",
    "gauss-legendre": "Gauss–Legendre",
    "exact": "APEX",
}
Cells = dict[tuple[str, str, str, int], Mapping[str, Any]]  # data set, model, precision, seed


def order(intervals: Sequence[int], errors: Sequence[float], floor: float) -> float:
    """The order of decay, from n = 16 on and above the floor; NaN where fewer than three points are left.

    >>> n = [8, 16, 32, 64, 128]
    >>> round(order(n, [3 / k**4 for k in n], 1e-12), 6), order(n, [1e-15] * 5, 1e-12)
    (4.0, nan)
    """
    kept = [(n, e) for n, e in zip(intervals, errors, strict=True) if n >= 16 and e > floor]
    if len(kept) < 3:
        return float("nan")
    x, y = np.log(np.array(kept)).T
    return float(-np.polyfit(x, y, 1)[0])


def points_needed(errors: Mapping[str, float], precision: float) -> int | None:
    """The least number of Gauss–Legendre points from which on, up to 16, the error is at float precision.

    >>> points_needed({"1": 1.0, "2": 1e-9, "3": 1e-3, "4": 1e-9, "16": 1e-9, "50": 1.0}, 1e-8)
    4
    """
    above = [int(n) for n, error in errors.items() if int(n) <= 16 and error > precision]
    at = [int(n) for n in errors if int(n) <= 16 and int(n) > max(above, default=0)]
    return min(at, default=None)


def means(cell: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Rule → NFE → mean error over graphs."""
    return {
        rule: {nfe: float(np.mean(values)) for nfe, values in by_nfe.items()}
        for rule, by_nfe in cell["errors"].items()
    }


def summary(cell: Mapping[str, Any], dtype: str) -> dict[str, Any]:
    """Orders, points and scale of one model in one precision."""
    mean, scale = means(cell), float(np.mean(cell["scale"]))
    rounding = torch.finfo(DTYPES[dtype]).eps * scale
    orders = {f"order_{rule}": order(INTERVALS, list(mean[rule].values()), 100 * rounding) for rule in RULES}
    points = points_needed(mean["gauss-legendre"], ROUNDING * rounding)
    exact = min(mean["exact"].values()) if "exact" in mean else None
    return {
        **{"graphs": len(cell["scale"]), "scale": scale, "precision": ROUNDING * rounding},
        **{"points": "" if points is None else points, "exact": "" if exact is None else exact},
        **{name: "" if np.isnan(value) else f"{value:.2f}" for name, value in orders.items()},
    }


def computed(laboratory: Laboratory, report: Report) -> Cells:
    """All cells, computed where they are missing, shared with whoever else is at it."""
    benches = {f"completeness {bench}".replace(" ", "-"): bench for bench in laboratory.benches()}
    progress = Progress(dict.fromkeys(benches, 1.0), report)

    def work(name: str) -> None:
        for dtype in DTYPES:
            _cell(laboratory, benches[name], dtype)
        progress.done(name)

    laboratory.store.share(benches, work)
    return {
        (b.dataset, b.kind, dtype, b.seed): _cell(laboratory, b, dtype)
        for b in benches.values()
        for dtype in DTYPES
    } | {(GENERIC, "polygin", dtype, 0): _generic(laboratory.store, dtype) for dtype in DTYPES}


def _cell(laboratory: Laboratory, bench: Bench, dtype: str) -> Mapping[str, Any]:
    chosen = subject_of(laboratory.field, bench.dataset, bench.seed)
    return completeness_cell(laboratory.store, chosen, bench.kind, dtype)


def _generic(store: Store, dtype: str) -> Mapping[str, Any]:
    model, graphs = generic()
    key = {"what": "completeness", "model": GENERIC, "dtype": dtype, "rules": [list(INTERVALS), list(POINTS)]}
    found: Mapping[str, Any] = store.cell(key, lambda: gathered(model, graphs, None, dtype))
    return found


def rows(cells: Cells) -> Iterator[dict[str, Any]]:
    """The rows of `completeness.csv`: means over graphs and seeds."""
    for dataset, kind, dtype in dict.fromkeys(name[:3] for name in cells):
        mine = [means(cell) for name, cell in cells.items() if name[:3] == (dataset, kind, dtype)]
        for rule, by_nfe in mine[0].items():
            for nfe in by_nfe:
                error = float(np.mean([mean[rule][nfe] for mean in mine]))
                yield {
                    **{"dataset": dataset, "model": kind, "rule": rule},
                    **{"dtype": dtype, "nfe": int(nfe), "error": error},
                }


def reproduce(laboratory: Laboratory, out: Path, *, report: Report = print) -> None:
    """Write completeness.csv, completeness-orders.csv and the figure."""
    cells = computed(laboratory, report)
    found = list(rows(cells))
    write_csv(out / "completeness.csv", COLUMNS, found)
    summaries = [
        {"dataset": dataset, "model": kind, "dtype": dtype, "seed": seed, **summary(cell, dtype)}
        for (dataset, kind, dtype, seed), cell in cells.items()
    ]
    write_csv(out / "completeness-orders.csv", SUMMARY, summaries)
    for dtype in DTYPES:
        draw(found, summaries, dtype, out / "figures" / f"completeness-{dtype}")
    details = {
        "graphs per model": GRAPHS,
        "nodes per model": NODES,
        "model seeds": {name: laboratory.field.seeds_of(name) for name in laboratory.datasets},
        "rounding": ROUNDING,
    }
    record(out / "provenance.json", "completeness", details)
    report(f"completeness: {len(found)} rows in {out / 'completeness.csv'}")


def draw(
    found: Sequence[Mapping[str, Any]], summaries: Sequence[Mapping[str, Any]], dtype: str, path: Path
) -> None:
    """One panel per data set and model: error against NFE, both logarithmic."""
    curves: dict[str, list[Curve]] = {}
    for kind in MODELS:
        for dataset in dict.fromkeys(row["dataset"] for row in found):
            mine = [r for r in found if (r["dataset"], r["model"], r["dtype"]) == (dataset, kind, dtype)]
            if not mine:
                continue
            precision = float(
                np.mean(
                    [
                        s["precision"]
                        for s in summaries
                        if (s["dataset"], s["model"], s["dtype"]) == (dataset, kind, dtype)
                    ]
                )
            )
            lines = [
                Curve(rule, label, *_line(mine, rule, precision))
                for rule, label in NAMES.items()
                if any(r["rule"] == rule for r in mine)
            ]
            ends = np.array([1.0, 257.0])
            lines.append(Curve("precision", f"{dtype} precision", ends, np.full(2, precision)))
            curves[f"{TITLES.get(dataset, dataset)}, {'PolyGIN' if kind == 'polygin' else 'GIN'}"] = lines
    figure = panels(
        curves,
        title=f"Completeness error against gradient evaluations, {dtype}",
        xlabel="gradient evaluations (NFE)",
        ylabel="mean |Σφ̂ − (f(X) − f(0))|, in units of the logit",
        log=True,
        styles=STYLES,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in (".pdf", ".svg", ".png"):
        save_figure(figure, path.with_suffix(ending))


def _line(rows: Sequence[Mapping[str, Any]], rule: str, precision: float) -> tuple[Any, Any]:
    """NFE and error of a rule; zeros, which a logarithmic scale cannot show, are shown at a thousandth of rounding."""
    mine = [row for row in rows if row["rule"] == rule]
    return np.array([row["nfe"] for row in mine]), np.maximum(
        [row["error"] for row in mine], precision / 1000
    )
