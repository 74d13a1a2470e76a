"""From a SMILES string to an explained molecule: a model that knows what it was trained on, and what it says.

>>> import torch
>>> from apexgnn.nn import PolyGIN
>>> network = PolyGIN(9, 2, hidden_channels=4)
>>> model = MoleculeModel.of(network, name="toy", labels=["inactive", "active"], featurizer="moleculenet")
>>> found = explain_molecule(model, "CCO", target="active")
>>> found.symbols, found.attribution.nodes.shape, found.exact
(('C', 'C', 'O'), torch.Size([3]), True)
"""

from apexgnn.molecules.explaining import Explained as Explained
from apexgnn.molecules.explaining import Explanation as Explanation
from apexgnn.molecules.explaining import explain_molecule as explain_molecule
from apexgnn.molecules.explaining import explain_rows as explain_rows
from apexgnn.molecules.model import MoleculeModel as MoleculeModel
from apexgnn.molecules.model import open_model as open_model
from apexgnn.molecules.records import check_ending as check_ending
from apexgnn.molecules.records import write_explanations as write_explanations

__all__ = [
    "Explained",
    "Explanation",
    "MoleculeModel",
    "check_ending",
    "explain_molecule",
    "explain_rows",
    "open_model",
    "write_explanations",
]
