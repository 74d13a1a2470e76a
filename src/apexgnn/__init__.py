"""Exact, certified attributions for graph neural networks.

The whole public surface stands here. Names are loaded when they are first used, so that importing the package,
and asking the command line for help, does not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from apexgnn.errors import ApexError as ApexError
from apexgnn.errors import BaselineError as BaselineError
from apexgnn.errors import CheckpointError as CheckpointError
from apexgnn.errors import DataError as DataError
from apexgnn.errors import GraphError as GraphError
from apexgnn.errors import InputError as InputError
from apexgnn.errors import MemoryBudgetError as MemoryBudgetError
from apexgnn.errors import MissingDependencyError as MissingDependencyError
from apexgnn.errors import MoleculeError as MoleculeError
from apexgnn.errors import NotPolynomialError as NotPolynomialError
from apexgnn.errors import NumericalError as NumericalError
from apexgnn.errors import TargetError as TargetError
from apexgnn.errors import TrainingError as TrainingError

if TYPE_CHECKING:
    from apexgnn.attribution import Attribution as Attribution
    from apexgnn.attribution import Certificate as Certificate
    from apexgnn.attribution import TraceRow as TraceRow
    from apexgnn.explain import APEX as APEX
    from apexgnn.explain import Permutation as Permutation
    from apexgnn.explain import attribute as attribute
    from apexgnn.explain import attribute_many as attribute_many
    from apexgnn.explain import attribute_nodes as attribute_nodes
    from apexgnn.explain import certify as certify
    from apexgnn.explain import integrated_gradients as integrated_gradients

__version__ = "0.1.0"

_HOME = {
    "APEX": "apexgnn.explain",
    "Attribution": "apexgnn.attribution",
    "Certificate": "apexgnn.attribution",
    "Permutation": "apexgnn.explain",
    "TraceRow": "apexgnn.attribution",
    "attribute": "apexgnn.explain",
    "attribute_many": "apexgnn.explain",
    "attribute_nodes": "apexgnn.explain",
    "certify": "apexgnn.explain",
    "integrated_gradients": "apexgnn.explain",
}

__all__ = [
    "APEX",
    "ApexError",
    "Attribution",
    "BaselineError",
    "Certificate",
    "CheckpointError",
    "DataError",
    "GraphError",
    "InputError",
    "MemoryBudgetError",
    "MissingDependencyError",
    "MoleculeError",
    "NotPolynomialError",
    "NumericalError",
    "Permutation",
    "TargetError",
    "TraceRow",
    "TrainingError",
    "attribute",
    "attribute_many",
    "attribute_nodes",
    "certify",
    "integrated_gradients",
]


def __getattr__(name: str) -> Any:
    """Load a public name from the room it lives in."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'apexgnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
