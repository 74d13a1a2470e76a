"""Models whose logits are polynomials, and the ReLU network they are compared with."""

from apexgnn.nn.layers import PolyActivation as PolyActivation
from apexgnn.nn.layers import PolyGINConv as PolyGINConv
from apexgnn.nn.layers import PolyScaleNorm as PolyScaleNorm
from apexgnn.nn.models import GIN as GIN
from apexgnn.nn.models import PolyGIN as PolyGIN

__all__ = ["GIN", "PolyActivation", "PolyGIN", "PolyGINConv", "PolyScaleNorm"]
