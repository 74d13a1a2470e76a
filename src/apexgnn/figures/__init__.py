"""Attributions as pictures: signed colours, blue against, white nothing, red for."""

from apexgnn.figures.graph import draw_graph as draw_graph
from apexgnn.figures.layout import stress_layout as stress_layout
from apexgnn.figures.molecule import draw_molecule as draw_molecule
from apexgnn.figures.palette import ink as ink
from apexgnn.figures.palette import shade as shade
from apexgnn.figures.saving import save_figure as save_figure

__all__ = ["draw_graph", "draw_molecule", "ink", "save_figure", "shade", "stress_layout"]
