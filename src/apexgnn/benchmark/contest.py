"""Every way to the same attributions of a PolyGIN of the paper's size, for 1, 8, 64 and 512 graphs of 30 nodes.

All contenders of one size take turns in one run. Before anything is timed, each answer is compared with the truth,
which is 8-point Gauss–Legendre in float64, point after point.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from matplotlib.figure import Figure

from apexgnn.benchmark.contenders import check, frozen, gauss, in_turn
from apexgnn.benchmark.lineup import (
    BATCHED,
    CAPTUM,
    CAPTUM_8,
    CAPTUM_PARTS,
    ENGINE,
    FORWARD,
    GRADIENT,
    IN_TURN,
    MASK,
    ORDER,
    OURS,
    PYG,
    ROWS,
    UNCHECKED,
    WITH_PARAMETERS,
    contenders,
)
from apexgnn.benchmark.molecules import Graphs, alike
from apexgnn.benchmark.part import Claim, Part, Record, Say, Settings, plural, table
from apexgnn.benchmark.timing import Times, timed
from apexgnn.figures.plots import COLOURS, axes_of, finish, new_figure, plain
from apexgnn.nn import PolyGIN


def measure(settings: Settings, say: Say) -> Record:
    """Times, errors, and what was left out and why, for each number of graphs."""
    torch.manual_seed(settings.seed)
    model = PolyGIN(14, 2).eval()
    sizes: dict[str, Any] = {}
    for count in settings.pick((1, 8, 64, 512), (1, 8)):
        graphs = Graphs.joined(alike(count, seed=settings.seed))
        target = model(*graphs[:3]).argmax(dim=1)
        truth = in_turn(frozen(model).double(), graphs.double(), target, gauss(8))
        calls, errors, skipped = {}, {}, {}
        for name, call in contenders(model, graphs, target):
            if isinstance(call, str):
                skipped[name] = call
                continue
            calls[name] = call
            if name not in UNCHECKED:
                errors[name] = check(call(), truth, name=name)
        say(f"{plural(count)}: {len(errors)} answers are right; timing {len(calls)} contenders")
        times = timed(calls, settings, seconds=2.0, least=3 if count < 512 else 2)
        sizes[str(count)] = {
            "times": {name: asdict(t) for name, t in times.items()},
            "errors": errors,
            "skipped": skipped,
        }
        say(f"{plural(count)}: one gradient {_ms(times[GRADIENT])} ms, {OURS} {_ms(times[OURS])} ms")
    return {
        "model": "PolyGIN(14, 2): hidden 300, 3 layers and head",
        "nodes": 30,
        "edges": 62,
        "sizes": sizes,
    }


def _ms(times: Times) -> str:
    return f"{1e3 * times.median:.2f}"


def ratios(record: Record, name: str, to: str) -> dict[int, float]:
    """Median time of one contender over that of another, for each number of graphs where both ran."""
    found = {}
    for count, size in record["sizes"].items():
        times = size["times"]
        if name in times and to in times:
            found[int(count)] = times[name]["median"] / times[to]["median"]
    return found


def best_gradient(record: Record) -> dict[int, float]:
    """Ours in gradients, whichever of the two kinds of gradient was faster."""
    frozen_ones, others = (ratios(record, OURS, g) for g in (GRADIENT, WITH_PARAMETERS))
    return {count: max(frozen_ones[count], others[count]) for count in frozen_ones}


def claims(record: Record) -> list[Claim]:
    """The worst size for each."""
    gradients = best_gradient(record)
    size = max(gradients, key=gradients.__getitem__)
    text = f"gradients that an attribution costs, at most (at {plural(size)})"
    found = [Claim(text, gradients[size], 1.4), Claim(text, gradients[size], 1.8)]
    for name, bound in ((IN_TURN, 5.0), (BATCHED, 2.5), (CAPTUM, 20.0), (PYG, 35.0)):
        speed = ratios(record, name, OURS)
        if speed:
            size = min(speed, key=speed.__getitem__)
            text = f"times as fast as {name}, at least (at {plural(size)})"
            found.append(Claim(text, speed[size], bound, at_most=False))
    return found


def text(record: Record) -> str:
    """Two tables: milliseconds, and multiples of our own time."""
    counts = list(record["sizes"])
    header = [plural(int(count)) for count in counts]
    times = [[name, *(_cell(record["sizes"][c], name) for c in counts)] for name in ORDER]
    speed = [[name, *(_multiple(record, name, int(c)) for c in counts)] for name in ORDER if name != OURS]
    gradients = best_gradient(record)
    speed.insert(3, [f"**{OURS}, in gradients**", *(f"**{gradients[int(c)]:.2f}**" for c in counts)])
    worst = max(max(size["errors"].values()) for size in record["sizes"].values())
    reasons = [
        f"{n}, {plural(int(c))} ({why})" for c in counts for n, why in record["sizes"][c]["skipped"].items()
    ]
    return "\n\n".join(
        [
            f"{record['model']}; graphs of {record['nodes']} nodes and {record['edges']} directed edges; float32; "
            "baseline zero; the same given target for all. Milliseconds, median (minimum); ~ marks a median above "
            "1.5 times the minimum.",
            table(["ms", *header], times),
            "How many times as long as `apexgnn.attribute` (medians); the row in bold is its own cost in gradients, "
            "the faster of the two kinds of gradient being the unit.",
            table(["times ours", *header], speed),
            f"Every attribution was compared with float64 before it was timed: the largest relative error is "
            f"{worst:.0e}. Captum's default, which PyG's is too, is Gauss–Legendre with 50 points; small parts are "
            f"as many points as make {ROWS} rows together, or one. Not run: " + "; ".join(reasons) + ".",
        ]
    )


def _cell(size: Record, name: str) -> str:
    if name not in size["times"]:
        return "–"
    return Times(**size["times"][name]).ms


def _multiple(record: Record, name: str, count: int) -> str:
    value = ratios(record, name, OURS).get(count)
    return "–" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def figure(record: Record) -> Figure:
    """Time in gradients, a column of panels."""
    shown = {
        FORWARD: "forward",
        OURS: "attribute",
        ENGINE: "attribute, PathTensor",
        IN_TURN: "Gauss–Legendre 8, in turn",
        BATCHED: "Gauss–Legendre 8, side by side",
        CAPTUM_8: "Captum IG, Gauss–Legendre 8",
        CAPTUM: "Captum IG, default (50)",
        CAPTUM_PARTS: "Captum IG, points in small parts",
        PYG: "PyG CaptumExplainer (50)",
        MASK: "PyG GNNExplainer (200)",
    }
    drawing = new_figure(9.5, 4.2, "Exact attribution against one gradient of the same model")
    axes = axes_of(drawing, 1, len(record["sizes"]), sharey=True)
    for panel, count in zip(axes, record["sizes"], strict=True):
        for place, name in enumerate(reversed(shown)):
            value = ratios(record, name, GRADIENT).get(int(count))
            colour = COLOURS["ours"] if name in (OURS, ENGINE) else COLOURS["other"]
            if value is None:
                continue
            panel.plot([1, value], [place, place], color=colour, lw=2, solid_capstyle="butt")
            panel.plot(value, place, "o", color=colour, ms=6)
            label = f"{value:.2f}" if value < 10 else f"{value:.0f}"
            step, side = (6, "left") if value >= 1 else (-6, "right")
            panel.annotate(
                label, (value, place), (step, 0), textcoords="offset points", ha=side, va="center", size=8.5
            )
        panel.axvline(1, color=COLOURS["line"], lw=1)
        panel.set(xscale="log", xlim=(0.12, 2500), title=plural(int(count)))
        plain(panel.xaxis)
        panel.set_yticks(range(len(shown)), list(reversed(shown.values())))
    return finish(drawing, xlabel="time, in gradients (log scale)")


PART = Part("contest", "Contenders on a PolyGIN", measure, text, claims, figure)
