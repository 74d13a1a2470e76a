"""Exact attribution of a PolyGIN for the price of a gradient."""

from apexgnn.explain.fused.run import FusedResult as FusedResult
from apexgnn.explain.fused.run import fused_attribution as fused_attribution

__all__ = ["FusedResult", "fused_attribution"]
