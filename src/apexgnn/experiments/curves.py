"""Curves of many methods in panels: a colour, a marker and a dash of its own for each, so that none needs the colour.

Colours are Okabe and Ito's and two dark ones of Tol's "muted" scheme; our own method is thick and on top, the control
is dotted grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from apexgnn.figures.palette import GREY
from apexgnn.figures.plots import axes_of, finish, new_figure

Array = NDArray[np.float64]

STYLES: dict[str, dict[str, Any]] = {
    "apex": {"color": "#0072B2", "marker": "o", "ls": "-", "lw": 2.6, "zorder": 9},
    "apex-permutation": {"color": "#56B4E9", "marker": "^", "ls": "--", "lw": 2.0, "zorder": 8},
    "ig": {"color": "#E69F00", "marker": "s", "ls": "-", "lw": 1.4},
    "captum-gl8": {"color": "#E69F00", "marker": "x", "ls": ":", "lw": 1.6},
    "saliency": {"color": "#CC79A7", "marker": "v", "ls": "-", "lw": 1.2},
    "gradcam": {"color": "#009E73", "marker": "D", "ls": "-", "lw": 1.2},
    "occlusion": {"color": "#D55E00", "marker": "P", "ls": "-", "lw": 1.2},
    "pgexplainer": {"color": "#882255", "marker": "<", "ls": "-.", "lw": 1.2},
    "gnnexplainer": {"color": "#882255", "marker": ">", "ls": "--", "lw": 1.2},
    "flowx": {"color": "#117733", "marker": "*", "ls": "-.", "lw": 1.2},
    "random": {"color": GREY, "marker": ".", "ls": ":", "lw": 1.2},
}
TITLES = {
    "ba-shapes": "BA-Shapes",
    "bbbp": "BBBP",
    "bace": "BACE",
    "graph-sst2": "Graph-SST2",
    "mutagenicity": "Mutagenicity",
}


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One line: its style's name, its label, its points, and a band around it or None."""

    style: str
    label: str
    x: Array
    y: Array
    band: tuple[Array, Array] | None = None


def panels(
    curves: Mapping[str, Sequence[Curve]],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    log: bool = False,
    styles: Mapping[str, dict[str, Any]] = STYLES,
) -> Figure:
    """One panel per key, three in a row, and the legend in a place of its own.

    >>> line = Curve("apex", "APEX", np.array([0.1, 0.9]), np.array([0.2, 0.3]))
    >>> figure = panels({"bbbp": [line]}, title="t", xlabel="x", ylabel="y")
    >>> figure.axes[0].get_title()
    'BBBP'
    """
    columns = min(3, len(curves) + 1)
    rows = -(-(len(curves) + 1) // columns)
    figure = new_figure(3.5 * columns, 2.9 * rows + 0.5, title)
    axes = axes_of(figure, rows, columns)
    handles: dict[str, Any] = {}
    for panel, (name, lines) in zip(axes, curves.items(), strict=False):
        panel.set_title(TITLES.get(name, name))
        for line in lines:
            style = {"ms": 4.5, "mew": 1.0, **styles[line.style]}
            (handle,) = panel.plot(line.x, line.y, **style)
            handles.setdefault(line.label, handle)
            if line.band is not None:
                panel.fill_between(line.x, *line.band, color=style["color"], alpha=0.16, lw=0)
        if log:
            panel.set_xscale("log")
            panel.set_yscale("log")
        else:
            panel.axhline(0, color=GREY, lw=0.6, zorder=0)
    finish(figure, xlabel=xlabel, ylabel=ylabel)
    for panel in axes[len(curves) :]:
        panel.axis("off")
    axes[len(curves)].legend(
        list(handles.values()), list(handles), loc="center left", frameon=False, fontsize=9, handlelength=3.2
    )
    return figure
