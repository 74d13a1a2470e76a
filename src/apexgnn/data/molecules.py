"""SMILES strings to graphs: the same features as the training data, or an error that says why not.

Two featurizers, named after what they were made for:

- "moleculenet": heavy atoms, nine integers each, PyTorch Geometric's own (atomic number, chirality, degree,
  formal charge, hydrogens, radical electrons, hybridisation, aromatic, in a ring);
- "mutagenicity": explicit hydrogens, one-hot of 14 elements.

Node i is atom i of `molecule(smiles, featurizer)`: the atoms in the order of the string, then the added
hydrogens. Policy, for strings that RDKit would take but a model should not:

- empty strings, control characters (a trailing NUL), anything after whitespace ("c1ccccc1 name"): refused;
- reactions (">") and dummy atoms ("*"): refused, they are not molecules;
- salts and other mixtures ("."): allowed, as one graph of several components;
- longer than `MAX_CHARACTERS`, or more atoms than `MAX_ATOMS`: refused before the costly steps;
- longer than `WATCHED_CHARACTERS`: read in a process of its own first, which gets `SECONDS`. RDKit cannot be
  interrupted, and a few thousand characters can hold a cage of rings that keeps it busy for long.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import from_rdmol

from apexgnn.choice import Choice
from apexgnn.errors import MissingDependencyError, MoleculeError

MAX_CHARACTERS = 5_000
MAX_ATOMS = 1_000
WATCHED_CHARACTERS = 1_000  # up to here nothing was found that takes RDKit a tenth of a second
SECONDS = 10.0
MUTAGENICITY_ELEMENTS = ("C", "O", "Cl", "H", "N", "F", "Br", "S", "P", "I", "Na", "K", "Li", "Ca")


class Featurizer(Choice):
    """How a molecule becomes a graph."""

    MOLECULENET = "moleculenet"
    MUTAGENICITY = "mutagenicity"


WIDTHS = {Featurizer.MOLECULENET: 9, Featurizer.MUTAGENICITY: len(MUTAGENICITY_ELEMENTS)}
"""Features per atom."""


def molecule_graph(
    smiles: str, featurizer: str = "moleculenet", *, elements: Collection[str] | None = None
) -> Data:
    """The graph of a molecule, with `smiles` kept on it.

    Args:
        smiles: one molecule.
        featurizer: "moleculenet" or "mutagenicity".
        elements: the elements that the model has seen in training; others are refused by name.

    >>> molecule_graph("CCO")
    Data(x=[3, 9], edge_index=[2, 4], smiles='CCO')
    >>> molecule_graph("CCO", "mutagenicity")
    Data(x=[9, 14], edge_index=[2, 16], smiles='CCO')
    >>> molecule_graph("c1ccccc1 benzene")
    Traceback (most recent call last):
        ...
    apexgnn.errors.MoleculeError: smiles: got text after whitespace in 'c1ccccc1 benzene'; expected one SMILES \
string. To fix: put the name into a column of its own.
    """
    mol = molecule(smiles, featurizer)
    if elements is not None:
        _check_elements(mol, elements, smiles)
    try:
        data = from_rdmol(mol)
    except ValueError as error:
        raise MoleculeError(
            "smiles", got=f"{_short(smiles)} ({error})", expected="atoms with common states"
        ) from error
    x = data.x.float() if featurizer == Featurizer.MOLECULENET else _one_hot(mol, smiles)
    return Data(x=x, edge_index=data.edge_index, smiles=smiles.strip())


def molecule(smiles: str, featurizer: str = "moleculenet") -> Any:
    """The RDKit molecule whose atom i is node i of `molecule_graph(smiles, featurizer)`.

    >>> [atom.GetSymbol() for atom in molecule("CO", "mutagenicity").GetAtoms()]
    ['C', 'O', 'H', 'H', 'H', 'H']
    """
    kind = Featurizer(featurizer)
    Chem, rdBase = _rdkit()
    text = _checked_text(smiles)
    if len(text) > WATCHED_CHARACTERS:
        _check_time(text)
    with rdBase.BlockLogs(), rdBase.CaptureErrorLog() as log:
        mol = Chem.MolFromSmiles(text)
    if mol is None:
        raise MoleculeError(
            "smiles", got=f"{_short(text)} ({_reason(log.messages)})", expected="valid SMILES"
        )
    if any(atom.GetAtomicNum() == 0 for atom in mol.GetAtoms()):
        raise MoleculeError(
            "smiles",
            got=f"{_short(text)} with a dummy atom '*'",
            expected="a complete molecule",
            fix="replace the attachment point with an atom",
        )
    if kind is Featurizer.MUTAGENICITY:
        mol = Chem.AddHs(mol)
    if mol.GetNumAtoms() > MAX_ATOMS:
        raise MoleculeError("smiles", got=f"{mol.GetNumAtoms():,} atoms", expected=f"at most {MAX_ATOMS:,}")
    return mol


def elements(x: np.ndarray, featurizer: str) -> tuple[str, ...]:
    """The elements that occur in node features.

    >>> elements(np.array([[6.0], [8.0], [6.0]]), "moleculenet")
    ('C', 'O')
    """
    if Featurizer(featurizer) is Featurizer.MUTAGENICITY:
        return tuple(np.array(MUTAGENICITY_ELEMENTS)[np.asarray(x).any(axis=0)].tolist())
    table = _rdkit()[0].GetPeriodicTable()
    return tuple(table.GetElementSymbol(int(number)) for number in np.unique(x[:, 0]))


def _checked_text(smiles: object) -> str:
    """The string without the whitespace around it, if it can be a SMILES string at all."""
    if not isinstance(smiles, str):
        raise MoleculeError("smiles", got=f"{smiles!r} ({type(smiles).__name__})", expected="a string")
    text = smiles.strip(" \t\r\n")
    if not text:
        raise MoleculeError("smiles", got="an empty string", expected="one SMILES string")
    if len(text) > MAX_CHARACTERS:
        raise MoleculeError("smiles", got=f"{len(text):,} characters", expected=f"at most {MAX_CHARACTERS:,}")
    if any(c.isspace() for c in text):
        raise MoleculeError(
            "smiles",
            got=f"text after whitespace in {_short(text)}",
            expected="one SMILES string",
            fix="put the name into a column of its own",
        )
    if not text.isprintable():
        raise MoleculeError("smiles", got=f"a control character in {_short(text)}", expected="printable text")
    if ">" in text:
        raise MoleculeError(
            "smiles",
            got=f"a reaction, {_short(text)}",
            expected="one molecule",
            fix="give reactant and product as rows of their own",
        )
    return text


def _check_time(text: str) -> None:
    """Refuse what RDKit cannot read within `SECONDS`; what is wrong with it otherwise shows later."""
    program = "import sys; from rdkit import Chem, RDLogger; RDLogger.DisableLog('rdApp.*'); "
    program += "Chem.MolFromSmiles(sys.stdin.read())"
    command = [sys.executable, "-c", program]
    try:
        subprocess.run(command, input=text, text=True, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise MoleculeError(
            "smiles",
            got=f"{_short(text)}, unread after {SECONDS:g} s",
            expected="a molecule that RDKit can read",
        ) from error


def _check_elements(mol: Any, elements: Collection[str], smiles: str) -> None:
    unseen = sorted({atom.GetSymbol() for atom in mol.GetAtoms()} - set(elements))
    if unseen:
        raise MoleculeError(
            "smiles",
            got=f"{', '.join(unseen)} in {_short(smiles)}",
            expected="only elements of the training data: " + ", ".join(sorted(elements)),
        )


def _one_hot(mol: Any, smiles: str) -> Tensor:
    _check_elements(mol, MUTAGENICITY_ELEMENTS, smiles)
    kinds = [MUTAGENICITY_ELEMENTS.index(atom.GetSymbol()) for atom in mol.GetAtoms()]
    return torch.nn.functional.one_hot(torch.tensor(kinds), len(MUTAGENICITY_ELEMENTS)).float()


def _short(text: str, most: int = 60) -> str:
    return repr(text if len(text) <= most else text[:most] + "…")


def _reason(messages: str) -> str:
    """RDKit's first complaint, without its time stamp."""
    first = messages.strip().split("\n")[0]
    return first.partition("] ")[2] if first.startswith("[") else first


def _rdkit() -> tuple[Any, Any]:
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise MissingDependencyError(
            "RDKit is needed to read SMILES. To fix: pip install 'apexgnn[molecules]'"
        ) from error
    return Chem, rdBase
