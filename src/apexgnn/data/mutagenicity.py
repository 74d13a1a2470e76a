"""Mutagenicity: the Ames test. (TUDataset; Kazius et al. 2005; Riesen and Bunke 2008.)

4,337 molecules with explicit hydrogens, nodes one-hot of 14 elements. Label 0 = mutagen (2,401),
1 = nonmutagen (1,936). Each graph also carries `atomic_number`, `bond_order` and, where the file is there,
`edge_gt`: True on the edges inside NO2 and NH2 groups, the usual ground truth for explanations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from apexgnn.data.dataset import Spec
from apexgnn.data.molecules import MUTAGENICITY_ELEMENTS
from apexgnn.data.packed import PackedGraphs
from apexgnn.data.sources import RawFile, cached, locate
from apexgnn.errors import DataError

_ZIP = (
    "https://github.com/flyingdoog/PGExplainer/raw/ee7020e7f61c2fd71bf612ab650db3cf7afb106c/"
    "dataset/Mutagenicity.zip"
)
ATOMIC_NUMBERS = (6, 8, 17, 1, 7, 9, 35, 16, 15, 53, 11, 19, 3, 20)


def _file(part: str, sha256: str, *, optional: bool = False) -> RawFile:
    name = f"Mutagenicity_{part}.txt"
    return RawFile(f"Mutagenicity/raw/{name}", sha256, url=_ZIP, member=name, optional=optional)


FILES = {
    "A": _file("A", "ae85e22b4b898ebd819d2ed3adc8f06a7bf1cda746b333086472d19b36711145"),
    "graph_indicator": _file(
        "graph_indicator", "88b2d83ff10fad75b3280654061e965976f74e75620058c371ed23567236b4bc"
    ),
    "graph_labels": _file("graph_labels", "b604c7dcbfdf89193901e32abdcbf9b5b92137414ce22231f00ed65d48ec48f9"),
    "node_labels": _file("node_labels", "b429ec418c831d02dc3088b2fe08d11214627850d2bbdacfa9797c0510e70ae7"),
    "edge_labels": _file("edge_labels", "bf8e783386ac22e6033bbce56d765c0a4336649bd590a6f1e467b27b549f2114"),
    "edge_gt": _file(
        "edge_gt", "d520a35eb480a94a36ff257d9a653d9bcd1fb8adae7698bfe72cc2c101cbce01", optional=True
    ),
}


def read(spec: Spec, root: Path | None) -> tuple[PackedGraphs, dict[str, Any]]:
    """The molecules of the TUDataset files."""
    paths = {part: locate(file, root) for part, file in FILES.items()}
    fingerprint = {part: FILES[part].sha256 for part, path in paths.items() if path is not None}
    return cached(spec.name, fingerprint, lambda: _molecules(paths, spec)), {}


def _molecules(paths: dict[str, Path | None], spec: Spec) -> PackedGraphs:
    columns = {
        part: np.loadtxt(path, delimiter=",", dtype=np.int64)
        for part, path in paths.items()
        if path is not None
    }
    of_node, kinds = columns["graph_indicator"] - 1, columns["node_labels"]
    if of_node[-1] + 1 != spec.graphs:
        raise DataError(str(paths["A"]), got=f"{of_node[-1] + 1} graphs", expected=f"{spec.graphs}")
    edge = {"bond_order": (columns["edge_labels"] + 1).astype(np.uint8)}
    if "edge_gt" in columns:
        edge["edge_gt"] = columns["edge_gt"].astype(bool)
    return PackedGraphs.from_union(
        np.eye(len(MUTAGENICITY_ELEMENTS), dtype=np.uint8)[kinds],
        columns["A"].T - 1,
        of_node,
        node={"atomic_number": np.array(ATOMIC_NUMBERS, dtype=np.uint8)[kinds]},
        edge=edge,
        graph={"y": columns["graph_labels"]},
    )


SPEC = Spec(
    name="mutagenicity",
    task="graph",
    features=14,
    classes=2,
    labels=("mutagen", "nonmutagen"),
    source="TUDataset files, as kept by github.com/flyingdoog/PGExplainer at ee7020e7",
    licence="none stated",
    read=read,
    graphs=4337,
    featurizer="mutagenicity",
    elements=MUTAGENICITY_ELEMENTS,
    files=tuple(FILES.values()),
)
