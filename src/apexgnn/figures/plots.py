"""One style for all plots: Okabe and Ito's colours, which all kinds of eyes tell apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from apexgnn.figures.palette import DARK, GREY, PALE

COLOURS = {"ours": "#0072B2", "other": "#D55E00", "third": "#009E73", "fourth": "#CC79A7", "line": GREY}
SERIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
FONT = "DejaVu Sans"


def new_figure(width: float, height: float, title: str) -> Figure:
    """A white page with its title at the top left; size in inches."""
    figure = Figure(figsize=(width, height), facecolor="white", layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", size=12, weight="bold", color=DARK, family=FONT)
    return figure


def axes_of(figure: Figure, rows: int, columns: int, **shared: Any) -> list[Axes]:
    """Panels in reading order."""
    return list(np.atleast_1d(figure.subplots(rows, columns, **shared)).flat)


def plain(axis: Axis) -> None:
    """A logarithmic scale with numbers as they are written, not as powers."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def finish(figure: Figure, *, xlabel: str = "", ylabel: str = "") -> Figure:
    """Quiet frames, a light grid, and labels for all panels together."""
    for panel in figure.axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(PALE)
        panel.grid(True, which="major", color="#ebebeb", lw=0.8)
        panel.set_axisbelow(True)
        panel.tick_params(colors=GREY, labelsize=8.5, which="both", labelfontfamily=FONT)
        panel.set_title(panel.get_title(), size=10, color=DARK, family=FONT)
        for label in (panel.xaxis.label, panel.yaxis.label):
            label.set(size=9, color=DARK, family=FONT)
    if xlabel:
        figure.supxlabel(xlabel, size=9, color=DARK, family=FONT)
    if ylabel:
        figure.supylabel(ylabel, size=9, color=DARK, family=FONT)
    return figure
