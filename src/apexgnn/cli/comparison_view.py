"""How `apexgnn compare` shows what it found: a table that fits 80 columns, notes on how to read it, a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from torch_geometric.data import Data

from apexgnn.metrics import Interval, Protocol, Row, bootstrap
from apexgnn.metrics.protocol import Masking


@dataclass(frozen=True, slots=True, eq=False)
class Cases:
    """What is explained, and on what PGExplainer learns first; `nodes` for a node task."""

    graphs: list[Data]
    nodes: list[int] | None
    learn: list[Data]
    learn_nodes: list[int] | None
    what: str


def table(rows: Sequence[Row], title: str) -> Table:
    """One row per explainer; intervals where there are several graphs."""
    drawn = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0), pad_edge=False)
    drawn.add_column("explainer", no_wrap=True)
    for column in ("Fidelity⁺ ↑", "Fidelity⁻ ↓", "residual", "seconds", "NFE"):
        drawn.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        if row.fidelity is None or row.residual is None:
            drawn.add_row(row.name, "refused", "", "", "", "", style="dim")
            continue
        plus, minus = (bootstrap(values.mean(1)) for values in (row.fidelity.plus, row.fidelity.minus))
        both = [_short(interval) for interval in (plus, minus)]
        residual = f"{float(row.residual.max()):.1e}"
        drawn.add_row(row.name, *both, residual, f"{row.seconds:.2g}", f"{row.evaluations:.0f}")
    return drawn


def _short(interval: Interval) -> str:
    mean = f"{float(interval.mean):.3f}"
    low, high = (
        f"{float(end):.2f}".replace("-0.", "-.").removeprefix("0") for end in (interval.low, interval.high)
    )
    return f"{mean} [{low}, {high}]" if interval.graphs > 1 else mean


def notes(rows: Sequence[Row], *, labelled: bool, learned: bool, cases: Cases) -> list[str]:
    """What the reader must know."""
    measured = next((row.fidelity for row in rows if row.fidelity is not None), None)
    said = [f"{row.name} refused: {row.refusal}" for row in rows if row.refusal]
    if measured is not None:
        used = len(measured.graphs)
        which = "classified correctly" if labelled else "without labels, whether right or wrong"
        count = f"{used} of {len(cases.graphs)} used ({which}); mean [95 % interval over them]."
        said = [count, _choices(measured.protocol), *measured.notes, _scale(rows), *said]
    if learned and cases.learn[0] is cases.graphs[0]:
        which = "graph itself" if len(cases.graphs) == 1 else "graphs themselves"
        said.append(f"pgexplainer has learned from the explained {which}.")
    return said


def _choices(protocol: Protocol) -> str:
    """How fidelity was measured, as far as the command lets it vary or a reader may wonder."""
    masks = {
        Masking.PERMUTATION: f"features of masked nodes permuted ({protocol.permutations} draws)",
        Masking.BASELINE: "features of masked nodes zero",
        Masking.EDGES: "edges of masked nodes removed",
    }
    return (
        f"fidelity: signed change of the predicted class's probability, {masks[Masking(protocol.masking)]}; "
        "nodes by signed score, ties by number."
    )


def _scale(rows: Sequence[Row]) -> str:
    largest = max(float(row.change.max()) for row in rows if row.change is not None)
    return (
        f"residual: largest |Σφ − (f(X) − f(0))|, where |f(X) − f(0)| is up to {largest:.1e}; "
        "only the path methods promise that it is small."
    )


def record(rows: Sequence[Row], cases: Cases, protocol: Protocol) -> dict[str, object]:
    """The table for a machine, with every choice."""
    choices = {key: getattr(protocol, key) for key in protocol.__dataclass_fields__}
    return {
        "input": cases.what,
        "protocol": {
            key: value if isinstance(value, int | str | tuple) else float(value)
            for key, value in choices.items()
        },
        "rows": [
            {
                "explainer": row.name,
                "refusal": row.refusal,
                "fidelity_plus": None if row.fidelity is None else row.fidelity.mean_plus.tolist(),
                "fidelity_minus": None if row.fidelity is None else row.fidelity.mean_minus.tolist(),
                "graphs": None if row.fidelity is None else row.fidelity.graphs.tolist(),
                "residual": None if row.residual is None else row.residual.tolist(),
                "change": None if row.change is None else row.change.tolist(),
                "seconds": row.seconds,
                "evaluations": row.evaluations,
            }
            for row in rows
        ],
    }
