"""Tables and sentences that the pages quote, made from the CSV files of the results and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from apexgnn.experiments.curves import TITLES
from apexgnn.experiments.lineup import LABELS
from apexgnn.experiments.standings import (
    Row,
    agreement,
    at_a_glance,
    by_size,
    first_tied_behind,
    interval,
    names_of,
    stated,
    titles,
)
from apexgnn.experiments.tables import markdown, read_csv
from apexgnn.experiments.why import NAMES, QUANTITIES

CSV = {
    "areas": "fidelity-areas.csv",
    "disentangle": "disentangle.csv",
    "completeness": "completeness.csv",
    "orders": "completeness-orders.csv",
    "others": "other-measures.csv",
    "runtime": "runtime.csv",
    "qualitative": "qualitative.csv",
    "why": "why.csv",
}


def rule_errors(rows: Sequence[Row]) -> str:
    """Errors of the rules at a glance, float32 and float64."""
    of = {(r["dataset"], r["model"], r["dtype"], r["rule"], r["nfe"]): float(r["error"]) for r in rows}
    wanted = (
        ("right", "64"),
        ("trapezoid", "65"),
        ("simpson", "65"),
        ("gauss-legendre", "7"),
        ("gauss-legendre", "8"),
    )
    lines = []
    for dataset, kind, dtype in dict.fromkeys((r["dataset"], r["model"], r["dtype"]) for r in rows):
        exact = [
            e for (d, k, t, rule, _), e in of.items() if (d, k, t, rule) == (dataset, kind, dtype, "exact")
        ]
        errors = [of.get((dataset, kind, dtype, *one), math.nan) for one in wanted]
        cells = [f"{error:.1e}" for error in errors] + ([f"{exact[0]:.1e}"] if exact else ["–"])
        lines.append(
            [TITLES.get(dataset, dataset), {"polygin": "PolyGIN", "gin": "GIN"}[kind], dtype, *cells]
        )
    head = [
        "data set",
        "model",
        "precision",
        "right, 64",
        "trapezoid, 65",
        "Simpson, 65",
        "GL, 7",
        "GL, 8",
        "APEX",
    ]
    return markdown(head, lines)


def rule_orders(rows: Sequence[Row]) -> str:
    """Orders in float64, and the number of Gauss–Legendre points at which each model is at float precision."""
    lines = []
    for dataset, kind in dict.fromkeys((row["dataset"], row["model"]) for row in rows):
        mine = [row for row in rows if (row["dataset"], row["model"]) == (dataset, kind)]
        double = [row for row in mine if row["dtype"] == "float64"]
        points = [
            ", ".join(row["points"] or "more than 16" for row in mine if row["dtype"] == dtype)
            for dtype in ("float32", "float64")
        ]
        orders = [
            ", ".join(row[f"order_{rule}"] or "–" for row in double)
            for rule in ("right", "trapezoid", "simpson")
        ]
        lines.append(
            [TITLES.get(dataset, dataset), {"polygin": "PolyGIN", "gin": "GIN"}[kind], *orders, *points]
        )
    head = ["data set", "model", "order: right", "trapezoid", "Simpson", "points, float32", "points, float64"]
    return markdown(head, lines)


def seconds(rows: Sequence[Row]) -> str:
    """Milliseconds per explanation, methods down, data sets across."""
    datasets = names_of(rows)
    of = {(row["dataset"], row["model"], row["method"]): float(row["seconds"]) for row in rows}
    lines = [
        [LABELS[m], {"polygin": "PolyGIN", "gin": "GIN"}[kind]]
        + [f"{1000 * of[d, kind, m]:.1f}" if (d, kind, m) in of else "–" for d in datasets]
        for m, kind in dict.fromkeys((row["method"], row["model"]) for row in rows)
    ]
    return markdown(["method", "model", *(TITLES.get(d, d) for d in datasets)], lines)


def checked(rows: Sequence[Row]) -> str:
    """What the pictures seem to show, as numbers."""
    lines = []
    for row in rows:
        value, low, high = (f"{float(row[name]):.3g}" for name in ("value", "low", "high"))
        lines.append([titles(row), row["measure"], f"{value} [{low}, {high}]", row["graphs"], row["seeds"]])
    return markdown(["data set", "measure", "mean [95 %]", "graphs", "seeds"], lines)


def reasons(rows: Sequence[Row]) -> str:
    """Masked together, one by one, interaction, peaks and agreement of every ranking."""
    lines = []
    for dataset in names_of(rows):
        of = {(row["method"], row["quantity"]): row for row in rows if row["dataset"] == dataset}
        for method, name in NAMES.items():
            if (method, "joint") in of:
                values = [float(of[method, q]["value"]) for q in QUANTITIES]
                cells = ["–" if math.isnan(value) else f"{value:.3g}" for value in values]
                lines.append([TITLES.get(dataset, dataset), name, *cells])
    head = [
        "data set",
        "ranking",
        "d(S)",
        "Σ d({v})",
        "interaction",
        "held by the best 10 %",
        "agreement",
        "|f(X′)|",
        "|f(X)|",
    ]
    return markdown(head, lines)


def other_measures(rows: Sequence[Row], measure: str) -> str:
    """One of the other measures, methods down, data sets across."""
    mine = [row for row in rows if row["measure"] == measure]
    datasets = names_of(mine)
    of = {(row["dataset"], row["model"], row["method"]): row for row in mine}
    lines = [
        [LABELS[m], {"polygin": "PolyGIN", "gin": "GIN"}[kind]]
        + [interval(of[d, kind, m]) if (d, kind, m) in of else "–" for d in datasets]
        for m, kind in dict.fromkeys((row["method"], row["model"]) for row in mine)
    ]
    return markdown(["method", "model", *(TITLES.get(d, d) for d in datasets)], lines)


STATEMENTS: dict[str, tuple[str, Callable[[Sequence[Row]], str]]] = {
    "first-tied-behind": ("areas", first_tied_behind),
    "at-a-glance": ("areas", at_a_glance),
    "statement": ("areas", stated),
    "by-size": ("areas", by_size),
    "ig-and-apex": ("disentangle", agreement),
    "rules": ("completeness", rule_errors),
    "orders": ("orders", rule_orders),
    "runtime": ("runtime", seconds),
    "qualitative": ("qualitative", checked),
    "why": ("why", reasons),
    "robust": ("others", lambda rows: other_measures(rows, "robust-delta")),
    "truth": ("others", lambda rows: other_measures(rows, "truth-auc")),
}


def statements(results: Path) -> dict[str, str]:
    """Every table and sentence by its name; those whose results are not there are left out.

    >>> statements(Path("nowhere"))
    {}
    """
    found = {}
    for name, (source, write) in STATEMENTS.items():
        rows = read_csv(results / CSV[source])
        if rows:
            found[name] = write(rows)
    for name in ("datasets", "table1"):
        path = results / f"{name}.md"
        if path.exists():
            found[name] = "\n".join(line for line in path.read_text().splitlines() if line.startswith("|"))
    return found
