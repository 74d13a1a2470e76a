"""How fast, how exact in float32, and how much memory: measured side by side, in one run, on this machine."""

from apexgnn.benchmark.part import Settings as Settings
from apexgnn.benchmark.speed import run as run

__all__ = ["Settings", "run"]
