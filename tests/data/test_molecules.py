"""SMILES to graphs: the features of PyTorch Geometric, and a reason where there is no graph."""

import time
from collections import Counter

import pytest
import torch
from rdkit import Chem
from torch_geometric.utils import from_smiles

from apexgnn.data import molecule, molecule_graph, molecules
from apexgnn.data.molecules import MUTAGENICITY_ELEMENTS
from apexgnn.errors import InputError, MoleculeError

GOOD = [
    "CCO",
    "C",
    "[Na+]",
    "c1ccccc1",
    "C[C@H](N)C(=O)O",
    "CC(=O)Oc1ccccc1C(=O)O",
    "[O-][N+](=O)c1ccccc1",
    "C/C=C/C",
    "[2H]OC",
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "F[P-](F)(F)(F)(F)F",
]


@pytest.mark.parametrize("smiles", GOOD)
def test_nine_integers_as_pyg_has_them(smiles):
    mine, theirs = molecule_graph(smiles), from_smiles(smiles)
    assert mine.x.dtype == torch.float32
    assert torch.equal(mine.x, theirs.x.float())
    assert torch.equal(mine.edge_index, theirs.edge_index)
    assert mine.smiles == smiles


def test_hydrogens_follow_the_atoms_of_the_string():
    data = molecule_graph("OCC", "mutagenicity")
    symbols = [MUTAGENICITY_ELEMENTS[k] for k in data.x.argmax(dim=1)]
    assert symbols == ["O", "C", "C"] + ["H"] * 6
    assert data.x.sum(dim=1).tolist() == [1.0] * 9
    assert torch.equal(data.x.unique(), torch.tensor([0.0, 1.0]))
    # ethanol: O–C, C–C, O–H, 5 × C–H
    edges = Counter(tuple(sorted((symbols[a], symbols[b]))) for a, b in data.edge_index.T.tolist())
    assert edges == {("C", "O"): 2, ("C", "C"): 2, ("H", "O"): 2, ("C", "H"): 10}


@pytest.mark.parametrize("featurizer", ["moleculenet", "mutagenicity"])
@pytest.mark.parametrize("smiles", ["OCC", "c1ccccc1N", "C[C@H](N)C(=O)O"])
def test_node_i_is_atom_i(smiles, featurizer):
    mol, data = molecule(smiles, featurizer), molecule_graph(smiles, featurizer)
    bonds = {(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in mol.GetBonds()}
    assert {tuple(e) for e in data.edge_index.T.tolist()} == bonds | {(b, a) for a, b in bonds}
    plain = Chem.MolFromSmiles(smiles)
    for atom in plain.GetAtoms():
        assert mol.GetAtomWithIdx(atom.GetIdx()).GetSymbol() == atom.GetSymbol()


@pytest.mark.parametrize(
    "smiles, why",
    [
        ("C1CC", "unclosed ring"),
        ("xyz", "syntax error"),
        ("c1cccc1", "kekulize"),
        ("C(C)(C)(C)(C)C", "Explicit valence for atom # 0 C"),
        ("[Xx]", "syntax error"),
        ("", "an empty string"),
        (" \n", "an empty string"),
        ("CCO\0", "control character"),
        ("c1ccccc1 name", "after whitespace"),
        ("c1ccccc1\tname", "after whitespace"),
        ("CCO>>CC=O", "a reaction"),
        ("*CC", "dummy atom"),
        ("[*:1]CC", "dummy atom"),
        (None, "None"),
        (float("nan"), "nan"),
    ],
)
def test_refused_with_a_reason(smiles, why):
    with pytest.raises(MoleculeError, match=why):
        molecule_graph(smiles)


def test_refusals_say_nothing_on_the_terminal(capfd):
    with pytest.raises(MoleculeError, match=r"\(SMILES Parse Error: unclosed ring"):
        molecule_graph("C1CC")
    molecule_graph("[H].C")
    assert capfd.readouterr() == ("", "")


def test_whitespace_around_is_no_part_of_it():
    assert molecule_graph(" CCO \n").smiles == "CCO"


def test_salts_are_one_graph_of_several_parts():
    data = molecule_graph("[Na+].[Cl-]")
    assert data.num_nodes == 2
    assert data.num_edges == 0


@pytest.mark.parametrize("smiles", ["[Si](C)(C)(C)C", "C[Se]C", "[Fe]"])
def test_an_unseen_element_is_named(smiles):
    symbol = next(s for s in ("Si", "Se", "Fe") if s in smiles)
    with pytest.raises(MoleculeError, match=rf"got {symbol} in .*; expected only elements"):
        molecule_graph(smiles, "mutagenicity")
    assert molecule_graph(smiles).x[:, 0].max() > 9
    with pytest.raises(MoleculeError, match=f"got {symbol} in"):
        molecule_graph(smiles, elements={"C", "H", "O"})


def test_long_strings_are_refused_at_once():
    start = time.perf_counter()
    with pytest.raises(MoleculeError, match="14,000 characters"):
        molecule_graph("C" * 14_000)
    assert time.perf_counter() - start < 0.1
    with pytest.raises(MoleculeError, match="4,000 atoms"):
        molecule_graph("C" * 4_000)


def test_long_strings_have_a_time_limit(monkeypatch):
    peptide = "CC(=O)N" * 150
    assert len(peptide) > molecules.WATCHED_CHARACTERS
    assert molecule_graph(peptide).num_nodes == 600
    monkeypatch.setattr(molecules, "SECONDS", 1e-3)
    with pytest.raises(MoleculeError, match=r"unread after 0\.001 s"):
        molecule_graph(peptide)
    assert molecule_graph("CCO").num_nodes == 3
    monkeypatch.setattr(molecules, "SECONDS", 60.0)
    with pytest.raises(MoleculeError, match="unclosed ring"):
        molecule_graph("C1" + peptide)


def test_unknown_featurizer():
    with pytest.raises(InputError, match="'moleculenet', 'mutagenicity'"):
        molecule_graph("CCO", "ecfp")
