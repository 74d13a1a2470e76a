"""Exact attribution of a PolyGIN for less than the price of a gradient: weights folded, polynomials multiplied."""

from apexgnn.explain.fused.fusable import fusable as fusable
from apexgnn.explain.fused.run import FusedResult as FusedResult
from apexgnn.explain.fused.run import fused_attribution as fused_attribution

__all__ = ["FusedResult", "fusable", "fused_attribution"]
