"""Area under the fidelity curves, and a plain statement of where APEX is first, tied or behind.

    area = ∫ Fidelity(s) ds / 0.8 over s from 0.1 to 0.9, by the trapezoid rule on the nine sparsities: a mean fidelity

Each graph has an area per seed. Intervals are 95 % bootstrap intervals over graphs, all seeds of a graph drawn
together. The difference to APEX is taken graph by graph; APEX is ahead of a method where the interval of the difference
lies on its good side, behind where it lies on the other, tied where it holds zero. It is first on a data set where no
method is ahead of it or tied with it. Intervals are of single comparisons, not corrected for their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from apexgnn.experiments.bench import Bench, Laboratory, Report, agreement, fill, robustness
from apexgnn.experiments.fidelity import COMPARISONS, line_up, stacked
from apexgnn.experiments.lineup import LABELS, METHODS
from apexgnn.experiments.measures import ROBUST_SAMPLES, ROBUST_SPARSITY, Array
from apexgnn.experiments.tables import between, markdown, record, write_csv
from apexgnn.files import write_atomically
from apexgnn.metrics.protocol import SPARSITIES

COLUMNS = (
    *("dataset", "comparison", "direction", "ranking", "model", "method", "area", "low", "high"),
    *("gain", "gain_low", "gain_high", "apex", "graphs", "seeds"),
)
OTHERS = ("dataset", "measure", "model", "method", "value", "low", "high", "graphs", "seeds")
RESAMPLES = 2000
SAME = {  # no rivals: our own method under another name or with another baseline, and the control
    "own": ("apex-permutation", "random"),
    "polygin": ("apex-permutation", "random", "ig", "captum-gl8"),
}


def area(values: Array) -> Array:
    """[G, K] fidelities to [G] areas.

    >>> area(np.ones((2, len(SPARSITIES)))).round(6).tolist()
    [1.0, 1.0]
    """
    s = np.array(SPARSITIES)
    found: Array = np.trapezoid(values, s, axis=1) / (s[-1] - s[0])
    return found


def clustered(values: Sequence[Array], ids: Sequence[Sequence[int]]) -> tuple[float, float, float, int]:
    """Mean and 95 % bootstrap interval of values that belong to graphs; a graph's values are drawn together.

    >>> clustered([np.array([1.0, 3.0]), np.array([1.0])], [[7, 8], [7]])[0::3]
    (1.6666666666666667, 2)
    """
    flat, owner = np.concatenate(values), np.concatenate([np.asarray(i) for i in ids])
    flat, owner = flat[~np.isnan(flat)], owner[~np.isnan(flat)]
    if not len(flat):
        return float("nan"), float("nan"), float("nan"), 0
    graphs, place = np.unique(owner, return_inverse=True)
    sums, counts = np.bincount(place, flat), np.bincount(place)
    drawn = np.random.default_rng(0).multinomial(
        len(graphs), np.full(len(graphs), 1 / len(graphs)), RESAMPLES
    )
    means = (drawn @ sums) / (drawn @ counts)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(flat.mean()), float(low), float(high), len(graphs)


def rows(laboratory: Laboratory) -> Iterator[dict[str, Any]]:
    """One row per data set, comparison, direction, ranking and method."""
    for dataset in laboratory.datasets:
        for comparison in COMPARISONS:
            for method, kind in line_up(comparison).items():
                by_size = METHODS[method].signed and kind == "polygin"
                for ranking in ("signed", "absolute") if by_size else ("signed",):
                    mine = stacked(laboratory, dataset, kind, method, ranking=ranking)
                    ours = stacked(laboratory, dataset, "polygin", "apex")
                    for direction, sign in (("plus", 1.0), ("minus", -1.0)):
                        areas = [area(getattr(m, direction)) for m in mine]
                        gains = [
                            sign * (area(getattr(o, direction)) - a) for o, a in zip(ours, areas, strict=True)
                        ]
                        ids = [m.ids for m in mine]
                        mean, low, high, graphs = clustered(areas, ids)
                        gain = clustered(gains, ids)
                        yield {
                            **{"dataset": dataset, "comparison": comparison, "direction": direction},
                            **{"ranking": ranking, "model": kind, "method": method},
                            **{"area": mean, "low": low, "high": high, "graphs": graphs, "seeds": len(mine)},
                            **{"gain": gain[0], "gain_low": gain[1], "gain_high": gain[2]},
                            "apex": verdict(gain[1], gain[2]),
                        }


def verdict(low: float, high: float) -> str:
    """What the interval of APEX's gain over a method says.

    >>> verdict(0.1, 0.2), verdict(-0.1, 0.1), verdict(-0.2, -0.1), verdict(0.0, 0.0)
    ('ahead', 'tied', 'behind', 'tied')
    """
    return "ahead" if low > 0 else "behind" if high < 0 else "tied"


def others(laboratory: Laboratory) -> Iterator[dict[str, Any]]:
    """Robust fidelity (seed 0) and AUC against the known reason (all seeds), on both models."""
    for dataset in laboratory.datasets:
        for kind in ("polygin", "gin"):
            for method in line_up("polygin" if kind == "polygin" else "own").items():
                if method[1] != kind:
                    continue
                name = method[0]
                entries: list[tuple[str, list[Array], list[Sequence[int]]]] = []
                benches = [Bench(dataset, kind, seed) for seed in range(laboratory.field.seeds_of(dataset))]
                if dataset in ("ba-shapes", "mutagenicity"):
                    found = [agreement(laboratory, bench, name) for bench in benches]
                    entries.append(("truth-auc", [auc for auc, _ in found], [ids for _, ids in found]))
                if dataset != "ba-shapes":
                    plus, minus = robustness(laboratory, benches[0], name)
                    ids = [range(len(plus))]
                    entries += [
                        ("robust-plus", [plus], list(ids)),
                        ("robust-minus", [minus], list(ids)),
                        ("robust-delta", [plus - minus], list(ids)),
                    ]
                for measure, values, owners in entries:
                    mean, low, high, graphs = clustered(values, owners)
                    yield {
                        **{"dataset": dataset, "measure": measure, "model": kind, "method": name},
                        **{"value": mean, "low": low, "high": high, "graphs": graphs, "seeds": len(values)},
                    }


def reproduce(laboratory: Laboratory, out: Path, *, report: Report = print) -> None:
    """Write fidelity-areas.csv, fidelity-areas.md and other-measures.csv."""
    fill(laboratory, report=report)
    found = list(rows(laboratory))
    write_csv(out / "fidelity-areas.csv", COLUMNS, found)
    write_csv(out / "other-measures.csv", OTHERS, others(laboratory))
    write_atomically(out / "fidelity-areas.md", page(found))
    details = {"resamples": RESAMPLES, "robust": {"sparsity": ROBUST_SPARSITY, "samples": ROBUST_SAMPLES}}
    record(out / "provenance.json", "areas", details)
    report(f"areas: {len(found)} rows in {out / 'fidelity-areas.csv'}")


def page(found: Sequence[Mapping[str, Any]]) -> str:
    """The areas for people: a table per comparison and direction, and the statement."""
    assert __doc__ is not None
    parts = [
        "# Area under Fidelity⁺ and Fidelity⁻\n",
        __doc__.split("\n", 2)[2].strip().replace("    area", "> area"),
    ]
    for comparison, words in COMPARISONS.items():
        for direction, better in (
            ("plus", "Fidelity⁺, higher is better"),
            ("minus", "Fidelity⁻, lower is better"),
        ):
            parts += [f"\n## {better}: {words}\n", table(found, comparison, direction)]
            parts += ["\n" + line for line in statement(found, comparison, direction)]
    return "\n".join(parts) + "\n"


def table(found: Sequence[Mapping[str, Any]], comparison: str, direction: str) -> str:
    """Methods down, data sets across; after the interval, where APEX stands against the method."""
    mine = [row for row in found if (row["comparison"], row["direction"]) == (comparison, direction)]
    datasets = list(dict.fromkeys(row["dataset"] for row in mine))
    of = {(row["dataset"], row["method"], row["ranking"]): row for row in mine}
    kinds = list(dict.fromkeys((row["method"], row["ranking"], row["model"]) for row in mine))
    lines = []
    for method, ranking, kind in kinds:
        label = LABELS[method] + (" by absolute value" if ranking == "absolute" else "")
        cells = []
        for dataset in datasets:
            row = of[dataset, method, ranking]
            note = "" if (method, ranking) == ("apex", "signed") else f", {row['apex']}"
            cells.append(between(float(row["area"]), float(row["low"]), float(row["high"])) + note)
        lines.append([label, {"polygin": "PolyGIN", "gin": "GIN"}[kind], *cells])
    return markdown(["method", "model", *datasets], lines)


def statement(found: Sequence[Mapping[str, Any]], comparison: str, direction: str) -> list[str]:
    """Where APEX is first, tied or behind, in words."""
    lines = []
    mine = [
        row
        for row in found
        if (row["comparison"], row["direction"], row["ranking"]) == (comparison, direction, "signed")
        and row["method"] not in ("apex", *SAME[comparison])
    ]
    for dataset in dict.fromkeys(row["dataset"] for row in mine):
        by = {
            word: [LABELS[row["method"]] for row in mine if (row["dataset"], row["apex"]) == (dataset, word)]
            for word in ("ahead", "tied", "behind")
        }
        place = "behind" if by["behind"] else "tied for first" if by["tied"] else "first"
        details = "; ".join(
            f"{words} {', '.join(by[word])}"
            for word, words in (("behind", "behind"), ("tied", "tied with"), ("ahead", "ahead of"))
            if by[word]
        )
        lines.append(f"- {dataset}: APEX is **{place}** ({details}).")
    return lines
