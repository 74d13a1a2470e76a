"""What a data set is: graphs, what they mean, where they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Batch, Data

from apexgnn.data.molecules import elements
from apexgnn.data.packed import PackedGraphs
from apexgnn.data.sources import RawFile
from apexgnn.data.splits import Split, check_kind, published_split, random_split, scaffold_split
from apexgnn.errors import InputError

Reader = Callable[["Spec", Path | None], tuple[PackedGraphs, dict[str, Any]]]
"""Finds the raw files below a folder and makes the graphs; also says what else decided the result."""


@dataclass(frozen=True, slots=True)
class Spec:
    """What is known of a data set before it is read.

    Attributes:
        name: as in `apexgnn.data.load(name)`.
        task: "graph" or "node" (classification), or "regression" (one number per graph).
        features: node features.
        classes: number of classes; 1 for regression.
        labels: meaning of each class; of the number, for regression.
        source: where the data come from.
        licence: as stated there.
        read: what makes the graphs.
        graphs: how many there are.
        splits: the splits that it has, the usual one first.
        files: the raw files with their checksums.
        featurizer: how a SMILES string becomes such a graph, for molecules.
        elements: those that its molecules have, for models that refuse others.
    """

    name: str
    task: str
    features: int
    classes: int
    labels: tuple[str, ...]
    source: str
    licence: str
    read: Reader
    graphs: int
    splits: tuple[str, ...] = ("random",)
    files: tuple[RawFile, ...] = ()
    featurizer: str | None = None
    elements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the graphs of a `GraphDataset` come from.

    Attributes:
        source: the place.
        licence: as stated there.
        sha256: checksum of every raw file that was read, or may be.
        made: what else decided the result: encoder, parser, versions, rows left out.
    """

    source: str
    licence: str
    sha256: dict[str, str] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Statistics:
    """A row of the table of data sets; `mean_edges` counts undirected edges."""

    graphs: int
    nodes: int
    mean_nodes: float
    mean_edges: float
    features: int
    classes: int
    class_counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class GraphDataset:
    """Graphs with labels; `dataset[i]` is a PyG `Data`, `dataset.batch(indices)` a PyG `Batch`.

    Attributes:
        name: as given to `load`.
        graphs: the graphs; a node task has one.
        task: "graph", "node" or "regression".
        num_features: node features.
        num_classes: classes; 1 for regression.
        labels: meaning of each class.
        provenance: source, licence, checksums.
        splits: the splits that it has, the usual one first.
        featurizer: name of the way from SMILES to such graphs, or None.

    >>> from apexgnn.data import load
    >>> dataset = load("ba-shapes")
    >>> dataset, dataset.split()
    (GraphDataset('ba-shapes', node, 1 graph, 10 features, 4 classes), Split(random, seed=0: 560/70/70))
    """

    name: str
    graphs: PackedGraphs
    task: str
    num_features: int
    num_classes: int
    labels: tuple[str, ...]
    provenance: Provenance
    splits: tuple[str, ...] = ("random",)
    featurizer: str | None = None

    def __repr__(self) -> str:
        plural = "" if len(self) == 1 else "s"
        target = "1 target" if self.task == "regression" else f"{self.num_classes} classes"
        return (
            f"GraphDataset({self.name!r}, {self.task}, {len(self)} graph{plural}, "
            f"{self.num_features} features, {target})"
        )

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, index: int) -> Data:
        return self.graphs[index]

    def __iter__(self) -> Iterator[Data]:
        return iter(self.graphs)

    def batch(self, indices: Sequence[int] | np.ndarray | Tensor) -> Batch:
        """The graphs at `indices` as one disjoint union."""
        return self.graphs.batch(indices)

    @property
    def y(self) -> Tensor:
        """All labels: one per graph, or per node for a node task."""
        return self.graphs.column("y")

    def split(self, kind: str | None = None, *, seed: int = 0) -> Split:
        """Training, validation and test indices (of nodes for a node task).

        Args:
            kind: "random", "scaffold" or "published"; by default the data set's usual one.
            seed: for the random split.
        """
        kind = check_kind(kind or self.splits[0], self.splits)
        if kind == "scaffold":
            return scaffold_split(self.graphs.strings["smiles"])
        if kind == "published":
            return published_split(self.graphs.column("split"))
        return random_split(len(self.y), seed)

    def elements(self) -> tuple[str, ...]:
        """The elements that occur in a set of molecules; for `molecule_graph(…, elements=…)`."""
        if self.featurizer is None:
            raise InputError("name", got=repr(self.name), expected="a set of molecules")
        return elements(self.graphs.x, self.featurizer)

    def statistics(self) -> Statistics:
        """Counts, for the table of data sets.

        >>> from apexgnn.data import load
        >>> load("ba-shapes").statistics().class_counts
        (300, 160, 160, 80)
        """
        nodes, edges = int(self.graphs.node_ptr[-1]), int(self.graphs.edge_ptr[-1])
        counts = () if self.task == "regression" else self.y.bincount(minlength=self.num_classes).tolist()
        return Statistics(
            graphs=len(self),
            nodes=nodes,
            mean_nodes=nodes / len(self),
            mean_edges=edges / 2 / len(self),
            features=self.num_features,
            classes=self.num_classes,
            class_counts=tuple(counts),
        )
