"""The data sets by name."""

from __future__ import annotations

import os

from apexgnn.data import ba_shapes, bace, bbbp, esol, graph_sst2, lipo, mutagenicity
from apexgnn.data.dataset import GraphDataset, Provenance, Spec
from apexgnn.data.sources import root_folder
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


def describe(name: str) -> Spec:
    """What is known of a data set without reading it.

    >>> describe("bbbp").labels
    ('not permeable', 'permeable')
    """
    if name not in SPECS:
        raise InputError("name", got=repr(name), expected="one of " + ", ".join(map(repr, SPECS)))
    return SPECS[name]


def load(name: str, *, root: str | os.PathLike[str] | None = None) -> GraphDataset:
    """A data set by name.

    Args:
        name: one of `names()`.
        root: the folder with the raw files; by default what APEXGNN_DATA names.

    >>> load("ba-shapes")[0]
    Data(x=[700, 10], edge_index=[2, 4110], motif=[700], y=[700], edge_gt=[4110])
    """
    spec = describe(name)
    graphs, made = spec.read(spec, root_folder(root))
    return GraphDataset(
        name=name,
        graphs=graphs,
        task=spec.task,
        num_features=graphs.x.shape[1],
        num_classes=spec.classes,
        labels=spec.labels,
        provenance=Provenance(spec.source, spec.licence, {f.path: f.sha256 for f in spec.files}, made),
        splits=spec.splits,
        featurizer=spec.featurizer,
    )
