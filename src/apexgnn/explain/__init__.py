"""Attribution of a model's score to its input: exact where that can be proven, approximate where it is said."""

from apexgnn.explain.attribute import attribute as attribute
from apexgnn.explain.baselines import Permutation as Permutation
from apexgnn.explain.certify import certify as certify
from apexgnn.explain.integrated import integrated_gradients as integrated_gradients
from apexgnn.explain.many import attribute_many as attribute_many
from apexgnn.explain.many import attribute_nodes as attribute_nodes
from apexgnn.explain.pyg import APEX as APEX

__all__ = [
    "APEX",
    "Permutation",
    "attribute",
    "attribute_many",
    "attribute_nodes",
    "certify",
    "integrated_gradients",
]
