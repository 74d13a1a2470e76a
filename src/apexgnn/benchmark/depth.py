"""How the cost grows with the number L of quadratic blocks, each of which doubles the degree.

Gauss–Legendre needs 2^(L−1) points, each with a pass forward and back through L blocks, so L · 2^(L−1) in all. The
fused kernel holds the polynomial of degree 2^k after k blocks by its coefficients: 1 + 2 + … + 2^(L−1) of them, so
time(L)/time(L−1) tends to 2. All depths take turns in one run.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import torch
from matplotlib.figure import Figure

from apexgnn.benchmark.contenders import check, frozen, gauss, gradient, in_turn, ours, side_by_side
from apexgnn.benchmark.molecules import Graphs, alike
from apexgnn.benchmark.part import Claim, Part, Record, Say, Settings, table
from apexgnn.benchmark.timing import Call, Times, timed
from apexgnn.figures.plots import COLOURS, axes_of, finish, new_figure, plain
from apexgnn.nn import PolyGIN

OURS, GRADIENT, BATCHED, IN_TURN = "attribute", "gradient", "side by side", "in turn"
GRAPHS = 8


def measure(settings: Settings, say: Say) -> Record:
    """Times for L = 2 … 6."""
    graphs = Graphs.joined(alike(GRAPHS, seed=settings.seed))
    calls: dict[str, Call] = {}
    errors: dict[str, float] = {}
    depths = settings.pick((2, 3, 4, 5, 6), (2, 3, 4))
    for blocks in depths:
        torch.manual_seed(settings.seed)
        model = PolyGIN(14, 2, num_layers=blocks - 1).eval()
        still, rule = frozen(model), gauss(2 ** (blocks - 1))
        target = model(*graphs[:3]).argmax(dim=1)
        truth = in_turn(frozen(model).double(), graphs.double(), target, rule)
        ways: dict[str, Call] = {
            OURS: partial(ours, model, graphs, target),
            BATCHED: partial(side_by_side, still, graphs, target, rule),
            IN_TURN: partial(in_turn, still, graphs, target, rule),
        }
        for way, call in ways.items():
            errors[f"{blocks} {way}"] = check(call(), truth, name=f"{way}, {blocks} blocks")
        ways[GRADIENT] = partial(gradient, still, graphs, target)
        calls |= {f"{blocks} {way}": call for way, call in ways.items()}
    say(f"timing {len(calls)} contenders")
    times = timed(calls, settings, seconds=4.0, least=5)
    return {
        "graphs": GRAPHS,
        "depths": list(depths),
        "times": {name: asdict(t) for name, t in times.items()},
        "errors": errors,
    }


def _median(record: Record, blocks: int, way: str) -> float:
    return float(record["times"][f"{blocks} {way}"]["median"])


def growth(record: Record) -> dict[int, float]:
    """time(L)/time(L − 1) of our attribution."""
    depths = record["depths"]
    return {n: _median(record, n, OURS) / _median(record, n - 1, OURS) for n in depths[1:]}


def share(record: Record, blocks: int) -> float:
    """Our time over that of Gauss–Legendre side by side."""
    return _median(record, blocks, OURS) / _median(record, blocks, BATCHED)


def claims(record: Record) -> list[Claim]:
    """At the greatest depth."""
    last = record["depths"][-1]
    points = 2 ** (last - 1)
    text = f"share of the time of {points}-point Gauss–Legendre side by side, at L = {last}"
    growing = f"distance from 2 of time({last})/time({last - 1}) of our attribution"
    return [
        Claim(text, 100 * share(record, last), 40.0, unit=" %"),
        Claim(growing, abs(growth(record)[last] - 2), 0.2),
    ]


def text(record: Record) -> str:
    """One row for each depth."""
    header = [
        *("L", "points", "one gradient", "attribute", "time(L)/time(L−1)", "in gradients"),
        *("Gauss–Legendre, side by side", "in turn", "share of side by side", "of the faster"),
    ]
    rows = []
    for n in record["depths"]:
        cells = {way: Times(**record["times"][f"{n} {way}"]) for way in (GRADIENT, OURS, BATCHED, IN_TURN)}
        shown = {way: times.ms for way, times in cells.items()}
        mine, best = cells[OURS].median, min(cells[BATCHED].median, cells[IN_TURN].median)
        rows.append(
            [
                *(str(n), str(2 ** (n - 1)), shown[GRADIENT], shown[OURS]),
                f"{growth(record)[n]:.2f}" if n in growth(record) else "–",
                f"{mine / cells[GRADIENT].median:.2f}",
                *(
                    shown[BATCHED],
                    shown[IN_TURN],
                    f"{100 * share(record, n):.0f} %",
                    f"{100 * mine / best:.0f} %",
                ),
            ]
        )
    return (
        f"{record['graphs']} graphs of 30 nodes, hidden 300, float32. Milliseconds, median (minimum).\n\n"
        + table(header, rows)
    )


def figure(record: Record) -> Figure:
    """Time against depth on a logarithmic scale, and the share beside it."""
    drawing = new_figure(9.0, 3.6, "Depth: cost of exactness for L quadratic blocks")
    left, right = axes_of(drawing, 1, 2)
    depths = record["depths"]
    ways = [
        (IN_TURN, "Gauss–Legendre, in turn", COLOURS["third"]),
        (BATCHED, "Gauss–Legendre, side by side", COLOURS["other"]),
        (OURS, "apexgnn.attribute", COLOURS["ours"]),
        (GRADIENT, "one gradient", COLOURS["line"]),
    ]
    for way, label, colour in ways:
        left.plot(
            depths, [1e3 * _median(record, n, way) for n in depths], "o-", color=colour, label=label, ms=5
        )
    left.set(yscale="log", ylabel="milliseconds", xlabel="quadratic blocks L", xticks=depths)
    plain(left.yaxis)
    left.legend(frameon=False, fontsize=8.5)
    shares = [100 * share(record, n) for n in depths]
    right.bar(depths, shares, color=COLOURS["ours"], width=0.6)
    for n, value in zip(depths, shares, strict=True):
        right.annotate(
            f"{value:.0f} %", (n, value), (0, 3), textcoords="offset points", ha="center", size=8.5
        )
    right.axhline(40, color=COLOURS["line"], lw=1, ls="--")
    right.set(
        ylabel="time, % of Gauss–Legendre side by side",
        xlabel="quadratic blocks L",
        xticks=depths,
        ylim=(0, max(45, 1.15 * max(shares))),
    )
    return finish(drawing)


PART = Part("depth", "Depth", measure, text, claims, figure)
