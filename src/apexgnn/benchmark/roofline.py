"""What the machine allows, and what limits.

For one gradient and for one attribution of the same batch, three costs are counted and priced by measurement:

    products    each matrix product, timed by itself at its very shape, with its operands at hand
    movement    bytes that all other operators read and write, at the rate at which this machine copies within its cache
    calls       operators, at what they take on a graph of one node, with the Python around them

Their sum is what a run without friction would take. What is missing from the measured time is friction: movement that
leaves the cache (which is priced too), threads that wait for each other, operands that are not at hand.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from apexgnn.benchmark.contenders import frozen, gradient, ours
from apexgnn.benchmark.counting import Counted, Shape, count
from apexgnn.benchmark.molecules import Graphs, alike, molecule
from apexgnn.benchmark.part import Part, Record, Say, Settings, plural, table
from apexgnn.benchmark.timing import Times, timed
from apexgnn.figures.plots import COLOURS, axes_of, finish, new_figure
from apexgnn.nn import PolyGIN

GRADIENT, OURS = "one gradient", "apexgnn.attribute"
KINDS = {"products": "matrix products", "movement": "movement", "calls": "calls"}
BUFFERS = {"cache": 8 << 20, "memory": 256 << 20}  # bytes that are copied to as many others


def measure(settings: Settings, say: Say) -> Record:
    """Counts, prices and times for each number of graphs."""
    torch.manual_seed(settings.seed)
    model = PolyGIN(14, 2).eval()
    machine, per_call = _machine(settings), _seconds_per_call(model, settings)
    say(
        f"products {machine['gflops']:.0f} GFLOP/s, copies {machine['cache']:.0f} GB/s in cache and "
        f"{machine['memory']:.0f} GB/s in memory"
    )
    sizes: dict[str, Any] = {}
    for number in settings.pick((1, 8, 64, 512), (1, 8)):
        graphs = Graphs.joined(alike(number, seed=settings.seed))
        calls = _calls(model, graphs)
        times = timed(calls, settings, seconds=3.0, least=5)
        sizes[str(number)] = {
            name: _priced(count(call), machine, settings, per_call=per_call[name])
            | {"times": asdict(times[name])}
            for name, call in calls.items()
        }
        say(f"{plural(number)}: counted and priced")
    return {"machine": machine, "per_call": per_call, "sizes": sizes}


def _calls(model: PolyGIN, graphs: Graphs) -> dict[str, Any]:
    target = model(*graphs[:3]).argmax(dim=1)
    return {
        GRADIENT: partial(gradient, frozen(model), graphs, target),
        OURS: partial(ours, model, graphs, target),
    }


def _seconds_per_call(model: PolyGIN, settings: Settings) -> dict[str, float]:
    """The time on a graph of one node, by operators."""
    calls = _calls(model, Graphs.joined([molecule(1, 0, np.random.default_rng(settings.seed))]))
    times = timed(calls, settings, seconds=2.0)
    return {name: times[name].median / count(call).operators for name, call in calls.items()}


def _machine(settings: Settings) -> dict[str, float]:
    """GFLOP/s of long products of the model's width, and GB/s of copies."""
    rows = 4096
    a, b, c = torch.rand(rows, 300), torch.rand(300, 300), torch.empty(rows, 300)
    calls: dict[str, Any] = {"product": partial(torch.mm, a, b, out=c)}
    for name, size in BUFFERS.items():
        source = torch.rand(size // 4)
        calls[name] = partial(torch.empty_like(source).copy_, source)
    best = {name: t.minimum for name, t in timed(calls, settings, seconds=1.0).items()}
    rates = {name: 2 * size / best[name] / 1e9 for name, size in BUFFERS.items()}
    return {"gflops": 2 * rows * 300 * 300 / best["product"] / 1e9, **rates}


def _priced(
    counted: Counted, machine: dict[str, float], settings: Settings, *, per_call: float
) -> dict[str, Any]:
    """Counts, and what they cost at least."""
    shapes = {str(shape): _product(shape) for shape in counted.products}
    times = timed(shapes, settings, seconds=0.5, most=10)
    products = sum(times[str(shape)].minimum * many for shape, many in counted.products.items())
    return {
        "flops": counted.flops,
        "moved": counted.moved,
        "operators": counted.operators,
        "products": products,
        "movement": counted.moved / machine["cache"] / 1e9,
        "movement_in_memory": counted.moved / machine["memory"] / 1e9,
        "calls": counted.operators * per_call,
    }


def _product(shape: Shape) -> Any:
    rows, inner, columns, first, second = shape
    a = torch.rand(inner, rows).t() if first else torch.rand(rows, inner)
    b = torch.rand(columns, inner).t() if second else torch.rand(inner, columns)
    return partial(torch.mm, a, b, out=torch.empty(rows, columns))


def _sum(found: Record) -> float:
    return float(sum(found[kind] for kind in KINDS))


def text(record: Record) -> str:
    """The counts with their prices, and what follows from them."""
    machine = record["machine"]
    rows = []
    for number, size in record["sizes"].items():
        for name in (GRADIENT, OURS):
            found = size[name]
            time = found["times"]["median"]
            rows.append(
                [
                    *(number, name, f"{found['flops'] / 1e9:.3f}", f"{found['moved'] / 1e6:.1f}"),
                    str(found["operators"]),
                    f"{1e3 * found['products']:.2f} ({found['flops'] / found['products'] / 1e9:.0f})",
                    f"{1e3 * found['movement']:.2f} ({1e3 * found['movement_in_memory']:.2f})",
                    f"{1e3 * found['calls']:.2f}",
                    *(
                        f"{1e3 * _sum(found):.2f}",
                        Times(**found["times"]).ms,
                        f"{100 * _sum(found) / time:.0f} %",
                    ),
                ]
            )
    header = [
        *("graphs", "what", "GFLOP in products", "MB moved by the rest", "operators"),
        *("matrix products, ms (GFLOP/s)", "movement, ms (if all in memory)", "calls, ms"),
        *("sum, ms", "measured, ms, median (minimum)", "explained"),
    ]
    return "\n\n".join(
        [
            f"This machine, as measured: {machine['gflops']:.0f} GFLOP/s in products of 4096 × 300 × 300, copies at "
            f"{machine['cache']:.0f} GB/s within the cache and {machine['memory']:.0f} GB/s in memory (bytes read "
            f"and bytes written both counted). On a graph of one node, an operator takes "
            f"{1e6 * record['per_call'][GRADIENT]:.1f} µs in a gradient and "
            f"{1e6 * record['per_call'][OURS]:.1f} µs in ours, with all the Python around it.",
            table(header, rows),
            "What limits: " + " ".join(_limit(int(n), size) for n, size in record["sizes"].items()),
        ]
    )


def _limit(number: int, size: Record) -> str:
    """One sentence, from the numbers alone."""
    mine, other = size[OURS], size[GRADIENT]
    time, plain = mine["times"]["median"], other["times"]["median"]
    shares = {label: mine[kind] / time for kind, label in KINDS.items()}
    shares["friction"] = max(0.0, 1 - sum(shares.values()))
    ordered = sorted(shares, key=shares.__getitem__, reverse=True)
    parts = ", ".join(f"{name} {100 * shares[name]:.0f} %" for name in ordered)
    return (
        f"At {plural(number)}, ours takes {time / plain:.2f} gradients with "
        f"{mine['flops'] / other['flops']:.2f} times the products' arithmetic and "
        f"{mine['moved'] / other['moved']:.2f} times the movement; its time goes to {parts}."
    )


def figure(record: Record) -> Figure:
    """Bars of the three costs beside the measured time, in measured gradients."""
    drawing = new_figure(9.0, 3.6, "What the machine allows, and what is measured")
    panels = axes_of(drawing, 1, len(record["sizes"]), sharey=True)
    colours = [COLOURS["ours"], "#56B4E9", "#E69F00"]
    for panel, (number, size) in zip(panels, record["sizes"].items(), strict=True):
        unit = size[GRADIENT]["times"]["median"]
        for place, name in enumerate((GRADIENT, OURS)):
            bottom = 0.0
            for (kind, label), colour in zip(KINDS.items(), colours, strict=True):
                height = size[name][kind] / unit
                panel.bar(place, height, 0.55, bottom, color=colour, label=label if place == 0 else None)
                bottom += height
            time = size[name]["times"]["median"] / unit
            panel.plot([place - 0.36, place + 0.36], [time, time], color="black", lw=2)
            panel.annotate(
                f"{time:.2f}", (place, time), (0, 4), textcoords="offset points", ha="center", size=8.5
            )
        panel.set(title=plural(int(number)), xlim=(-0.6, 1.6))
        panel.set_xticks([0, 1], ["gradient", "attribute"])
    panels[0].plot([], [], color="black", lw=2, label="measured")
    panels[0].set_ylabel("in measured gradients")
    panels[0].margins(y=0.12)
    drawing.legend(
        *panels[0].get_legend_handles_labels(),
        frameon=False,
        fontsize=8.5,
        loc="outside lower center",
        ncols=4,
    )
    return finish(drawing)


PART = Part("roofline", "Roofline", measure, text, lambda record: [], figure)
