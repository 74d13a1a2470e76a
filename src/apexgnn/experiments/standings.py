"""What the fidelity curves and areas say, in tables and sentences, made from their CSV files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apexgnn.experiments.areas import SAME, statement
from apexgnn.experiments.curves import TITLES
from apexgnn.experiments.fidelity import COMPARISONS, DIRECTIONS
from apexgnn.experiments.lineup import LABELS
from apexgnn.experiments.tables import between, markdown

Row = Mapping[str, str]


def titles(row: Row) -> str:
    """A data set's name as it is written."""
    return TITLES.get(row["dataset"], row["dataset"])


def interval(row: Row, name: str = "value", digits: int = 3) -> str:
    """The value of a row with its interval.

    >>> interval({"value": "0.5", "low": "0.4", "high": "0.6"})
    '0.500 [0.400, 0.600]'
    """
    return between(float(row[name]), float(row["low"]), float(row["high"]), digits)


def names_of(rows: Sequence[Row]) -> list[str]:
    """The data sets of some rows, in their order."""
    return list(dict.fromkeys(row["dataset"] for row in rows))


@dataclass(frozen=True, slots=True)
class Standing:
    """APEX against all other methods in one question on one data set.

    Attributes:
        apex, best: rows of APEX and of the best other method.
        verdicts: "ahead", "tied" or "behind", for each other method.
    """

    apex: Row
    best: Row
    verdicts: tuple[str, ...]

    @property
    def place(self) -> str:
        """First if ahead of all, behind if behind any, else tied."""
        return "behind" if "behind" in self.verdicts else "tied" if "tied" in self.verdicts else "first"


def standing(rows: Sequence[Row], dataset: str, comparison: str, direction: str) -> Standing:
    """Where APEX stands. On the same PolyGIN, numerical IG is the same quantity and not counted as another method."""
    mine = [
        row
        for row in rows
        if (row["dataset"], row["comparison"], row["direction"], row["ranking"])
        == (dataset, comparison, direction, "signed")
    ]
    rivals = [row for row in mine if row["method"] not in ("apex", *SAME[comparison])]
    sign = 1 if direction == "plus" else -1
    return Standing(
        next(row for row in mine if row["method"] == "apex"),
        max(rivals, key=lambda row: sign * float(row["area"])),
        tuple(row["apex"] for row in rivals),
    )


def first_tied_behind(rows: Sequence[Row]) -> str:
    """Per data set and question: APEX's area, the best other method's, and where APEX stands."""
    lines = []
    for comparison, words in COMPARISONS.items():
        for direction, better in DIRECTIONS.items():
            for dataset in names_of(rows):
                found = standing(rows, dataset, comparison, direction)
                counted = " / ".join(str(found.verdicts.count(word)) for word in ("ahead", "tied", "behind"))
                best = f"{LABELS[found.best['method']]} {interval(found.best, 'area')}"
                lines.append(
                    [
                        *(words, better.split(" ")[0], titles(found.apex), interval(found.apex, "area")),
                        *(best, f"**{found.place}**", counted),
                    ]
                )
    head = [
        "comparison",
        "fidelity",
        "data set",
        "APEX",
        "best other method",
        "APEX is",
        "ahead / tied / behind",
    ]
    return markdown(head, lines)


def at_a_glance(rows: Sequence[Row]) -> str:
    """A line per data set: APEX's place in the four questions, its area, and the best other method's."""
    lines = []
    for dataset in names_of(rows):
        cells = []
        for comparison in COMPARISONS:
            for direction in DIRECTIONS:
                found = standing(rows, dataset, comparison, direction)
                area, best = float(found.apex["area"]), float(found.best["area"])
                cells.append(f"**{found.place}**: {area:.2f}; {LABELS[found.best['method']]} {best:.2f}")
        lines.append([TITLES.get(dataset, dataset), *cells])
    head = [
        "data set",
        "own architecture, Fidelity⁺ ↑",
        "Fidelity⁻ ↓",
        "same PolyGIN, Fidelity⁺ ↑",
        "Fidelity⁻ ↓",
    ]
    return markdown(head, lines)


def stated(rows: Sequence[Row]) -> str:
    """Where APEX is first, tied or behind, method by method."""
    parts = []
    for comparison, words in COMPARISONS.items():
        for direction, better in DIRECTIONS.items():
            parts += [f"{better}, {words}:\n", *statement(rows, comparison, direction), ""]
    return "\n".join(parts).strip()


def agreement(rows: Sequence[Row]) -> str:
    """Whether numerical IG with 50 points and APEX have the same fidelity on PolyGIN, within their intervals."""
    keys = ("dataset", "seed", "sparsity", "direction")
    of = {(row["method"], *(row[k] for k in keys)): row for row in rows}
    lines = []
    for dataset in names_of(rows):
        pairs = [
            (row, of["ig", *(row[k] for k in keys)])
            for row in rows
            if row["dataset"] == dataset and row["method"] == "apex"
        ]
        apart = [abs(float(a["value"]) - float(b["value"])) for a, b in pairs]
        inside = sum(float(a["low"]) <= float(b["value"]) <= float(a["high"]) for a, b in pairs)
        lines.append(
            [titles(pairs[0][0]), len(pairs), f"{max(apart):.4f}", f"{sum(apart) / len(apart):.4f}", inside]
        )
    head = [
        "data set",
        "points of the curves",
        "largest difference",
        "mean difference",
        "IG inside APEX's interval",
    ]
    return markdown(head, lines)


def by_size(rows: Sequence[Row]) -> str:
    """Ranking by |φ| against ranking by φ: areas of the same scores."""
    of = {(r["dataset"], r["comparison"], r["direction"], r["method"], r["ranking"]): r for r in rows}
    lines = [
        [titles(row), LABELS[method], *(
            interval(of[dataset, "polygin", direction, method, ranking], "area")
            for direction in ("plus", "minus")
            for ranking in ("signed", "absolute")
        )]
        for (dataset, comparison, direction, method, ranking), row in of.items()
        if (comparison, direction, ranking) == ("polygin", "plus", "absolute")
    ]  # fmt: skip
    head = [
        "data set",
        "method (on PolyGIN)",
        "Fidelity⁺ by φ",
        "Fidelity⁺ by |φ|",
        "Fidelity⁻ by φ",
        "Fidelity⁻ by |φ|",
    ]
    return markdown(head, lines)
