"""Models whose logits are polynomials, and the ReLU network they are compared with."""

from apexgnn.nn.checkpoint import load as load
from apexgnn.nn.checkpoint import read_checkpoint as read_checkpoint
from apexgnn.nn.checkpoint import save as save
from apexgnn.nn.injectivity import InjectivityReport as InjectivityReport
from apexgnn.nn.injectivity import LayerInjectivity as LayerInjectivity
from apexgnn.nn.injectivity import injectivity_report as injectivity_report
from apexgnn.nn.layers import PolyActivation as PolyActivation
from apexgnn.nn.layers import PolyGINConv as PolyGINConv
from apexgnn.nn.layers import PolyScaleNorm as PolyScaleNorm
from apexgnn.nn.manifest import Checkpoint as Checkpoint
from apexgnn.nn.models import GIN as GIN
from apexgnn.nn.models import PolyGIN as PolyGIN

__all__ = [
    "GIN",
    "Checkpoint",
    "InjectivityReport",
    "LayerInjectivity",
    "PolyActivation",
    "PolyGIN",
    "PolyGINConv",
    "PolyScaleNorm",
    "injectivity_report",
    "load",
    "read_checkpoint",
    "save",
]
