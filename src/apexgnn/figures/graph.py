"""A graph whose nodes wear their share of a score: the picture of one explanation, legible by itself.

Fill is the signed share φ on the diverging scale, and the number stands in the node. The explained node has a
double ring, nodes of a known true explanation (a motif) a black one, their edges are heavier. Several scores of
the same node stand side by side, on one scale and in the same places.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from numpy.typing import NDArray
from torch import Tensor

from apexgnn.errors import InputError
from apexgnn.figures.layout import stress_layout, upright
from apexgnn.figures.palette import DARK, DIVERGING, GREY, PALE, ink, shade

FONT = "DejaVu Sans"
SIDE, FOOT, HEAD, SCALE = 4.9, 0.75, 1.45, 1.35  # inches: a panel, below it, above it, the colour scale
LARGEST, SMALLEST = 0.30, 0.06  # radius of a node, where an edge is about 1 long
FLATTEST = 0.6  # height of a panel at least, of its width


@dataclass(frozen=True, slots=True, eq=False)
class _Scene:
    """What all panels share."""

    places: NDArray[np.float64]
    edges: NDArray[np.int64]
    radius: float
    limit: float
    target: int | None
    motif: frozenset[int]

    @property
    def half(self) -> NDArray[np.float64]:
        """Half the extent that a panel shows, in both directions; never much wider than high."""
        reach = np.ptp(self.places, axis=0) / 2 + 1.7 * self.radius
        return np.array([reach.max(), max(reach[1], FLATTEST * reach.max())])


def draw_graph(
    edge_index: Tensor,
    values: Tensor,
    *,
    target: int | None = None,
    motif: Collection[int] = (),
    captions: Sequence[str] = (),
    title: str = "",
    subtitle: str = "",
) -> Figure:
    """Draw every node of a graph with its signed share.

    Args:
        edge_index: [2, E]; directions are not shown.
        values: [N], the shares, or [K, N] for K scores side by side.
        target: the node that is explained.
        motif: nodes that are known to be the reason.
        captions: one line above each panel.
        title: one line above all.
        subtitle: what the shares add up to, say.

    >>> import torch
    >>> path = torch.tensor([[0, 1], [1, 2]])
    >>> figure = draw_graph(path, torch.tensor([0.5, -0.25, 0.0]), target=0, title="A path")
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['0.50', '−0.25', '0.00']
    """
    shares = np.atleast_2d(values.detach().cpu().double().numpy())
    if values.dim() not in (1, 2) or not values.numel():
        raise InputError("values", got=f"shape {tuple(values.shape)}", expected="[N] or [K, N] with N ≥ 1")
    panels, nodes = shares.shape
    edges = np.unique(np.sort(edge_index.cpu().numpy(), axis=0), axis=1)
    places = upright(stress_layout(edges, nodes), tip=target, base=sorted(motif))
    limit = float(np.abs(shares).max()) or 1.0
    scene = _Scene(places, edges, _radius(places), limit, target, frozenset(motif))
    tall = SIDE * scene.half[1] / scene.half[0]
    width, height = panels * SIDE + SCALE, tall + FOOT + HEAD
    figure = Figure(figsize=(width, height), facecolor="white")
    for k, row in enumerate(shares):
        axes = figure.add_axes((k * SIDE / width, FOOT / height, SIDE / width, tall / height))
        _panel(axes, scene, row)
        caption = captions[k] if k < len(captions) else ""
        axes.set_title(caption, size=10.5, color=DARK, family=FONT, pad=2)
    _scale(figure, limit, left=(panels * SIDE + 0.25) / width, width=0.16 / width)
    _legend(figure, target=target is not None, motif=bool(motif))
    figure.text(0.3 / width, 1 - 0.40 / height, title, size=14, weight="bold", color=DARK, family=FONT)
    figure.text(0.3 / width, 1 - 0.74 / height, subtitle, size=9.5, color=GREY, family=FONT, va="center")
    return figure


def number(value: float, *, limit: float) -> str:
    """A value as it is printed: as many digits as the largest one needs, with a true minus sign.

    >>> number(-0.126, limit=3.2), number(-0.001, limit=3.2), number(17.26, limit=31.0)
    ('−0.13', '0.00', '17.3')
    """
    if not 1e-2 <= limit < 1e4:
        text = f"{value:.0e}"
    else:
        text = f"{value:.{max(0, 2 - max(0, int(np.floor(np.log10(limit)))))}f}"
    return (text if text.strip("-0.") else text.lstrip("-")).replace("-", "−")


def _radius(places: NDArray[np.float64]) -> float:
    """As large as may be without nodes that touch."""
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return float(np.clip(0.46 * apart.min(initial=1.0), SMALLEST, LARGEST))


def _panel(axes: Axes, scene: _Scene, values: NDArray[np.float64]) -> None:
    middle = (scene.places.max(axis=0) + scene.places.min(axis=0)) / 2
    low, high = middle - scene.half, middle + scene.half
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    axes.axis("off")
    for inside, colour, width in ((False, PALE, 1.3), (True, DARK, 2.4)):
        lines = [
            scene.places[[u, v]]
            for u, v in scene.edges.T
            if u != v and (u in scene.motif and v in scene.motif) == inside
        ]
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=width, zorder=1))
    points = 72 * SIDE * scene.radius / scene.half[0]  # the diameter of a node on paper
    for node, value in enumerate(values):
        _node(axes, scene, node, float(value), points)


def _node(axes: Axes, scene: _Scene, node: int, value: float, points: float) -> None:
    x, y = (float(v) for v in scene.places[node])
    fill, outlined = shade(value, limit=scene.limit), node in scene.motif or node == scene.target
    if node == scene.target:
        ring = Circle((x, y), 1.32 * scene.radius, facecolor="white", edgecolor=DARK, linewidth=2.2, zorder=2)
        axes.add_patch(ring)
    colour, width = (DARK, 2.0) if outlined else (GREY, 0.9)
    axes.add_patch(Circle((x, y), scene.radius, facecolor=fill, edgecolor=colour, linewidth=width, zorder=3))
    label, size = number(value, limit=scene.limit), min(10.0, 0.26 * points)
    if size >= 5:
        text = axes.text(x, y, label, size=size, color=ink(fill), family=FONT, zorder=4)
        text.set(ha="center", va="center_baseline")


def _scale(figure: Figure, limit: float, *, left: float, width: float) -> None:
    axes = figure.add_axes((left, 0.22, width, 0.50))
    bar = figure.colorbar(ScalarMappable(Normalize(-limit, limit), DIVERGING), cax=axes)
    ticks = [-limit, -limit / 2, 0.0, limit / 2, limit]
    bar.set_ticks(ticks, labels=[number(v, limit=limit) for v in ticks])
    bar.outline.set_edgecolor(PALE)
    axes.tick_params(labelsize=9, length=0, labelcolor=GREY)
    for text, height, align, sign in (("supports", 1.03, "bottom", 1), ("opposes", -0.03, "top", -1)):
        colour = shade(sign, limit=1)
        axes.text(0, height, text, transform=axes.transAxes, va=align, size=9.5, color=colour, family=FONT)


def _legend(figure: Figure, *, target: bool, motif: bool) -> None:
    def disc(edge: str, width: float, size: float = 11) -> Line2D:
        return Line2D([], [], marker="o", ls="", ms=size, mfc="white", mec=edge, mew=width)

    entries: list[tuple[Any, str]] = []
    if target:
        entries.append(((disc(DARK, 1.8), disc(DARK, 1.4, 5.5)), "explained node"))
    if motif:
        entries.append((disc(DARK, 2.0), "true motif"))
    entries.append((disc(GREY, 0.9), "other node"))
    figure.legend(
        [handle for handle, _ in entries],
        [text for _, text in entries],
        loc="lower left",
        bbox_to_anchor=(0.01, 0.015),
        ncols=len(entries),
        frameon=False,
        fontsize=9.5,
        labelcolor=DARK,
        handletextpad=0.4,
        columnspacing=1.8,
    )
