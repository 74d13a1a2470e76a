"""One graph of 10² to 10⁵ nodes: the cost of its attribution beside that of a gradient and of quadrature.

A graph that is larger than a block of the kernel is worked on in blocks of rows, so nothing but the planes between
layers grows with it. What would need more memory than a plain backward pass of the largest graph is left out.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from apexgnn.benchmark.contenders import Explain, check, frozen, gauss, in_turn
from apexgnn.benchmark.lineup import (
    BATCHED,
    CAPTUM,
    CAPTUM_8,
    ENGINE,
    FORWARD,
    GRADIENT,
    IN_TURN,
    LARGEST,
    OURS,
    UNCHECKED,
    contenders,
)
from apexgnn.benchmark.molecules import Graphs, molecule
from apexgnn.benchmark.part import Part, Record, Say, Settings, plural, table
from apexgnn.benchmark.timing import Times, timed
from apexgnn.figures.plots import COLOURS, axes_of, finish, new_figure, plain
from apexgnn.nn import PolyGIN

SHOWN = (FORWARD, GRADIENT, OURS, ENGINE, IN_TURN, BATCHED, CAPTUM_8, CAPTUM)
ATOMS_PER_RING = 15


def measure(settings: Settings, say: Say) -> Record:
    """Times for every size."""
    torch.manual_seed(settings.seed)
    model = PolyGIN(14, 2).eval()
    rows: list[dict[str, Any]] = []
    for nodes in settings.pick((100, 1_000, 10_000, 100_000), (100, 1_000)):
        generator = np.random.default_rng(settings.seed)
        graph = Graphs.joined([molecule(nodes, nodes // ATOMS_PER_RING, generator)])
        target = model(*graph[:3]).argmax(dim=1).detach()
        truth = in_turn(frozen(model).double(), graph.double(), target, gauss(8))
        calls = _calls(model, graph, target)
        errors = {n: check(call(), truth, name=n) for n, call in calls.items() if n not in UNCHECKED}
        times = timed(calls, settings, seconds=2.0, least=2 if nodes > 10_000 else 3)
        row = {"nodes": nodes, "times": {n: asdict(t) for n, t in times.items()}, "errors": errors}
        rows.append(row)
        say(f"{plural(nodes, 'node')}: attribution in {in_gradients(row):.2f} gradients")
    return {"rows": rows}


def _calls(model: PolyGIN, graph: Graphs, target: torch.Tensor) -> dict[str, Explain]:
    """Those that fit; the PathTensor engine keeps as many planes as quadrature side by side."""
    small = 8 * len(graph.x) <= LARGEST
    return {
        name: call
        for name, call in contenders(model, graph, target)
        if name in SHOWN and not isinstance(call, str) and (small or name != ENGINE)
    }


def in_gradients(row: Record) -> float:
    """Our median over that of one gradient."""
    return float(row["times"][OURS]["median"] / row["times"][GRADIENT]["median"])


def text(record: Record) -> str:
    """A column for each size."""
    rows = record["rows"]
    cells = [[name, *(_cell(row, name) for row in rows)] for name in SHOWN]
    cells.append([f"**{OURS}, in gradients**", *(f"**{in_gradients(row):.2f}**" for row in rows)])
    worst = max(max(row["errors"].values()) for row in rows)
    return (
        "One graph, a tree with a ring for every fifteen nodes; PolyGIN(14, 2), hidden 300, float32, baseline zero. "
        "Milliseconds, median (minimum); – is what does not fit into memory. The largest relative error of an "
        f"attribution, against float64, is {worst:.0e}.\n\n"
        + table(["ms", *(plural(row["nodes"], "node") for row in rows)], cells)
    )


def _cell(row: Record, name: str) -> str:
    return Times(**row["times"][name]).ms if name in row["times"] else "–"


def figure(record: Record) -> Figure:
    """Time against the number of nodes, both logarithmic."""
    drawing = new_figure(6.5, 4.0, "One graph: cost against its size")
    (panel,) = axes_of(drawing, 1, 1)
    ways = {
        IN_TURN: COLOURS["third"],
        BATCHED: COLOURS["other"],
        OURS: COLOURS["ours"],
        GRADIENT: COLOURS["line"],
    }
    for name, colour in ways.items():
        rows = [row for row in record["rows"] if name in row["times"]]
        times = [1e3 * row["times"][name]["median"] for row in rows]
        panel.plot([row["nodes"] for row in rows], times, "o-", color=colour, label=name, ms=5)
    panel.set(xscale="log", yscale="log", xlabel="nodes of the graph", ylabel="milliseconds")
    plain(panel.xaxis)
    plain(panel.yaxis)
    panel.legend(frameon=False, fontsize=8.5)
    return finish(drawing)


PART = Part("size", "One graph of 10² to 10⁵ nodes", measure, text, lambda record: [], figure)
