"""Data sets: `load(name)` gives graphs with labels, their meaning, their source and their splits.

>>> from apexgnn.data import load
>>> load("ba-shapes")
GraphDataset('ba-shapes', node, 1 graph, 10 features, 4 classes)
"""

from apexgnn.data.dataset import GraphDataset as GraphDataset
from apexgnn.data.dataset import Provenance as Provenance
from apexgnn.data.dataset import Spec as Spec
from apexgnn.data.dataset import Statistics as Statistics
from apexgnn.data.molecules import Featurizer as Featurizer
from apexgnn.data.molecules import molecule as molecule
from apexgnn.data.molecules import molecule_graph as molecule_graph
from apexgnn.data.packed import PackedGraphs as PackedGraphs
from apexgnn.data.registry import describe as describe
from apexgnn.data.registry import load as load
from apexgnn.data.registry import names as names
from apexgnn.data.splits import Split as Split
from apexgnn.data.tables import Row as Row
from apexgnn.data.tables import Table as Table
from apexgnn.data.tables import read_molecules as read_molecules
from apexgnn.data.tables import read_table as read_table
from apexgnn.data.tables import write_table as write_table

__all__ = [
    "Featurizer",
    "GraphDataset",
    "PackedGraphs",
    "Provenance",
    "Row",
    "Spec",
    "Split",
    "Statistics",
    "Table",
    "describe",
    "load",
    "molecule",
    "molecule_graph",
    "names",
    "read_molecules",
    "read_table",
    "write_table",
]
