"""Attributions as pictures: signed colours, blue against, white nothing, red for."""

from apexgnn.figures.graph import draw_graph as draw_graph
from apexgnn.figures.layout import stress_layout as stress_layout
from apexgnn.figures.palette import ink as ink
from apexgnn.figures.palette import shade as shade
from apexgnn.figures.saving import save_figure as save_figure

__all__ = ["draw_graph", "ink", "save_figure", "shade", "stress_layout"]
