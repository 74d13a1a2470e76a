"""How the graphs of the pictures look on paper: molecules as chemists draw them, houses with their surroundings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from apexgnn.data import molecule
from apexgnn.errors import MissingDependencyError
from apexgnn.figures.layout import stress_layout, upright

Edges = list[tuple[int, int, float]]
BOND = 1.5  # Å that RDKit draws a bond long


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Places of the nodes, bonds with their orders, a letter for each node."""

    places: NDArray[np.float64]
    edges: Edges
    letters: list[str]


def molecular(graph: Data) -> Structure:
    """A molecule in the plane, from its SMILES string or from its atomic numbers and bond orders.

    >>> ends = torch.tensor([[0, 1], [1, 0]])
    >>> carbonyl = Data(edge_index=ends, atomic_number=torch.tensor([6, 8]), bond_order=torch.tensor([2, 2]))
    >>> found = molecular(carbonyl)
    >>> found.letters, found.edges
    (['C', 'O'], [(0, 1, 2.0)])
    """
    try:
        from rdkit import Chem
        from rdkit.Chem import rdDepictor
    except ImportError as error:
        raise MissingDependencyError(
            "Drawing molecules needs RDKit: pip install 'apexgnn[molecules]'"
        ) from error
    if "smiles" in graph:
        mol = molecule(graph.smiles)
    else:
        mol = Chem.RWMol()
        for number in graph.atomic_number.tolist():
            mol.AddAtom(Chem.Atom(int(number)))
        kinds = (Chem.BondType.SINGLE, Chem.BondType.DOUBLE, Chem.BondType.TRIPLE)
        for (u, v), bond in zip(graph.edge_index.T.tolist(), graph.bond_order.tolist(), strict=True):
            if u < v:
                mol.AddBond(u, v, kinds[min(int(bond), 3) - 1])
        mol.UpdatePropertyCache(strict=False)
    rdDepictor.Compute2DCoords(mol)
    places = np.array(mol.GetConformer().GetPositions())[:, :2] / BOND
    edges = [
        (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), float(bond.GetBondTypeAsDouble()))
        for bond in mol.GetBonds()
    ]
    return Structure(places, edges, [atom.GetSymbol() for atom in mol.GetAtoms()])


def house_of(graph: Data, node: int) -> Tensor:
    """[N] booleans: the five nodes of the house that a node belongs to, joined by the house's own edges.

    >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> marked = torch.tensor([True, True, False, False])
    >>> house_of(Data(x=torch.ones(3, 1), edge_index=edges, edge_gt=marked), 0).tolist()
    [True, True, False]
    """
    ends = graph.edge_index[:, graph.edge_gt]
    inside = torch.zeros(graph.num_nodes or 0, dtype=torch.bool)
    inside[node] = True
    for _ in range(4):
        inside[ends[1, inside[ends[0]]]] = True
    return inside


def surroundings(graph: Data, node: int, *, most: int = 9) -> tuple[Tensor, Structure]:
    """A house and what hangs on it: at most so many neighbours, then of theirs; which nodes, and how they look.

    The nodes nearest to the house come first, among equals those with the lower number.
    """
    inside = house_of(graph, node)
    edges = graph.edge_index
    kept, frontier = inside.clone(), inside
    for _ in range(2):
        reached = torch.zeros_like(inside)
        reached[edges[1, frontier[edges[0]]]] = True
        fresh = (reached & ~kept).nonzero().flatten()[: most - int((kept & ~inside).sum())]
        frontier = torch.zeros_like(inside)
        frontier[fresh] = True
        kept = kept | frontier
    nodes = kept.nonzero().flatten()
    place = torch.full((len(inside),), -1)
    place[nodes] = torch.arange(len(nodes))
    among = edges[:, kept[edges[0]] & kept[edges[1]]]
    pairs = np.unique(np.sort(place[among].numpy(), axis=0), axis=1)
    base = place[inside.nonzero().flatten()].tolist()
    places = upright(stress_layout(pairs, len(nodes)), tip=int(place[node]), base=base)
    return nodes, Structure(places, [(int(u), int(v), 1.0) for u, v in pairs.T], [""] * len(nodes))
