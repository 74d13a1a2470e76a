"""Mathematics of the straight path: quadrature, resolutions, and tensors of polynomials in τ."""

from apexgnn.path import rules as rules
from apexgnn.path.path import Path as Path
from apexgnn.path.quadrature import Quadrature as Quadrature
from apexgnn.path.quadrature import Rule as Rule
from apexgnn.path.quadrature import quadrature as quadrature
from apexgnn.path.resolution import Grid as Grid
from apexgnn.path.resolution import Resolution as Resolution
from apexgnn.path.resolution import interpolation as interpolation
from apexgnn.path.resolution import lobatto as lobatto
from apexgnn.path.tensor import PathTensor as PathTensor

__all__ = [
    "Grid",
    "Path",
    "PathTensor",
    "Quadrature",
    "Resolution",
    "Rule",
    "interpolation",
    "lobatto",
    "quadrature",
    "rules",
]
