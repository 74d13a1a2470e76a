"""Many signed graphs on one page: atoms of molecules, nodes around a house.

Fill is the share φ on the diverging scale, each picture on its own, from −max|φ| to max|φ|; the limit is printed below
it. A letter stands in the node; ringed nodes belong to a known reason, the explained one has a double ring.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray

from apexgnn.figures.palette import DARK, DIVERGING, GREY, PALE, ink, shade
from apexgnn.figures.plots import FONT, axes_of, new_figure

SIDE, HEAD = 3.3, 0.5  # inches of a picture; room for what stands above it


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """One graph in its place.

    Attributes:
        places: [N, 2], an edge being about 1 long.
        edges: pairs of nodes with the number of lines between them (1.5: aromatic, as one line and a dash).
        values: [N], the shares.
        letters: what stands in each node, "" for nothing.
        caption: lines above the picture.
        target: the explained node.
        ringed: nodes of a known reason.
    """

    places: NDArray[np.float64]
    edges: Sequence[tuple[int, int, float]]
    values: NDArray[np.float64]
    letters: Sequence[str]
    caption: str = ""
    target: int | None = None
    ringed: Collection[int] = ()


def draw_scenes(scenes: Sequence[Scene], *, columns: int, title: str, subtitle: str = "") -> Figure:
    """A page of pictures in reading order, with one colour scale.

    >>> pair = Scene(np.array([[0.0, 0.0], [1.0, 0.0]]), [(0, 1, 1.0)], np.array([1.0, -1.0]), ["C", "O"])
    >>> [text.get_text() for text in draw_scenes([pair], columns=1, title="Two").axes[0].texts]
    ['C', 'O', 'scale ±1']
    """
    rows = -(-len(scenes) // columns)
    figure = new_figure(SIDE * columns + 1.2, (SIDE + HEAD) * rows + 0.6, title)
    panels = axes_of(figure, rows, columns)
    for panel in panels:
        panel.axis("off")
    for panel, scene in zip(panels, scenes, strict=False):
        _picture(panel, scene)
    bar = figure.colorbar(
        ScalarMappable(Normalize(-1, 1), DIVERGING), ax=panels, shrink=0.5, aspect=25, pad=0.02
    )
    bar.set_ticks([-1, 0, 1], labels=["opposes\nthe class", "0", "supports\nthe class"])
    bar.outline.set_edgecolor(PALE)
    bar.ax.tick_params(length=0, labelsize=9, labelcolor=GREY, labelfontfamily=FONT)
    if subtitle:
        figure.supxlabel(subtitle, size=9, color=GREY, family=FONT, x=0.01, ha="left")
    return figure


def _picture(panel: Axes, scene: Scene) -> None:
    limit = float(np.abs(scene.values).max()) or 1.0
    low, high = scene.places.min(0), scene.places.max(0)
    half = max(float((high - low).max()) / 2, 1.5) + 0.7
    middle = (low + high) / 2
    panel.set(
        xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half), aspect="equal"
    )
    panel.set_title(scene.caption, size=8.5, color=DARK, family=FONT, pad=2)
    radius, points = 0.40, 72 * SIDE / (2 * half)  # of a node, and of one unit on paper
    for u, v, lines in scene.edges:
        _bond(panel, scene.places[u], scene.places[v], lines)
    for node, value in enumerate(scene.values):
        spot = (float(scene.places[node][0]), float(scene.places[node][1]))
        fill, known = shade(float(value), limit=limit), node in scene.ringed
        if node == scene.target:
            panel.add_patch(
                Circle(spot, 1.4 * radius, facecolor="white", edgecolor=DARK, linewidth=1.6, zorder=2)
            )
        edge, width = (DARK, 1.6) if known or node == scene.target else (PALE, 0.6)
        panel.add_patch(Circle(spot, radius, facecolor=fill, edgecolor=edge, linewidth=width, zorder=3))
        if scene.letters[node]:
            size = min(9.0, 0.62 * points * radius * 2)
            panel.text(
                *spot, scene.letters[node], size=size, color=ink(fill), family=FONT, zorder=4,
                ha="center", va="center_baseline",
            )  # fmt: skip
    panel.text(
        0.5,
        0.0,
        f"scale ±{limit:.2g}",
        transform=panel.transAxes,
        size=7.5,
        color=GREY,
        family=FONT,
        ha="center",
    )


def _bond(panel: Axes, a: NDArray[np.float64], b: NDArray[np.float64], lines: float) -> None:
    """One, two or three parallel lines; an aromatic bond is a line and a dashed one."""
    along = b - a
    aside = np.array([-along[1], along[0]]) / (float(np.hypot(*along)) or 1.0) * 0.13
    count = int(np.ceil(lines))
    for k in range(count):
        shift = (k - (count - 1) / 2) * aside
        ends = np.stack([a, b]) + shift
        style = "--" if lines == 1.5 and k else "-"
        panel.plot(*ends.T, color=GREY, lw=1.0, ls=style, zorder=1, solid_capstyle="round")
