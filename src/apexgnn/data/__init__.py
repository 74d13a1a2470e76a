"""Data sets: `load(name)` gives graphs with labels, their meaning, their source and their splits.

>>> from apexgnn.data import load
>>> load("ba-shapes")
GraphDataset('ba-shapes', node, 1 graph, 10 features, 4 classes)
"""

from __future__ import annotations

import os

from apexgnn.data import ba_shapes, bace, bbbp, esol, graph_sst2, lipo, mutagenicity
from apexgnn.data.dataset import GraphDataset as GraphDataset
from apexgnn.data.dataset import Provenance as Provenance
from apexgnn.data.dataset import Spec as Spec
from apexgnn.data.dataset import Statistics as Statistics
from apexgnn.data.molecules import molecule as molecule
from apexgnn.data.molecules import molecule_graph as molecule_graph
from apexgnn.data.packed import PackedGraphs as PackedGraphs
from apexgnn.data.sources import root_folder
from apexgnn.data.splits import Split as Split
from apexgnn.errors import InputError

SPECS: dict[str, Spec] = {
    spec.name: spec
    for spec in (
        ba_shapes.SPEC,
        ba_shapes.PUBLISHED,
        bbbp.SPEC,
        bace.SPEC,
        graph_sst2.SPEC,
        mutagenicity.SPEC,
        esol.SPEC,
        lipo.SPEC,
    )
}


def names() -> tuple[str, ...]:
    """The names that `load` knows.

    >>> names()[:3]
    ('ba-shapes', 'ba-shapes-published', 'bbbp')
    """
    return tuple(SPECS)


def load(name: str, *, root: str | os.PathLike[str] | None = None) -> GraphDataset:
    """A data set by name.

    Args:
        name: one of `names()`.
        root: the folder with the raw files; by default what APEXGNN_DATA names.
    """
    if name not in SPECS:
        raise InputError("name", got=repr(name), expected="one of " + ", ".join(map(repr, SPECS)))
    spec = SPECS[name]
    graphs, made = spec.read(spec, root_folder(root))
    return GraphDataset(
        name=name,
        graphs=graphs,
        task=spec.task,
        num_features=spec.features,
        num_classes=spec.classes,
        labels=spec.labels,
        provenance=Provenance(spec.source, spec.licence, {f.path: f.sha256 for f in spec.files}, made),
        splits=spec.splits,
        featurizer=spec.featurizer,
    )
