"""Yardsticks: what an explanation is worth, with every choice stated in the result."""

from apexgnn.metrics.comparison import Row as Row
from apexgnn.metrics.comparison import compare as compare
from apexgnn.metrics.completeness import Completeness as Completeness
from apexgnn.metrics.completeness import completeness as completeness
from apexgnn.metrics.fidelity import Fidelity as Fidelity
from apexgnn.metrics.fidelity import fidelity as fidelity
from apexgnn.metrics.intervals import Interval as Interval
from apexgnn.metrics.intervals import bootstrap as bootstrap
from apexgnn.metrics.protocol import Protocol as Protocol
from apexgnn.metrics.robust import RobustFidelity as RobustFidelity
from apexgnn.metrics.robust import robust_fidelity as robust_fidelity
from apexgnn.metrics.stability import Stability as Stability
from apexgnn.metrics.stability import stability as stability
from apexgnn.metrics.truth import GroundTruth as GroundTruth
from apexgnn.metrics.truth import ground_truth as ground_truth

__all__ = [
    "Completeness",
    "Fidelity",
    "GroundTruth",
    "Interval",
    "Protocol",
    "RobustFidelity",
    "Row",
    "Stability",
    "bootstrap",
    "compare",
    "completeness",
    "fidelity",
    "ground_truth",
    "robust_fidelity",
    "stability",
]
