"""Small models of molecules: untrained, but random everywhere, so that nothing is right by accident."""

import torch

from apexgnn.data.molecules import WIDTHS
from apexgnn.molecules import MoleculeModel
from apexgnn.nn import PolyGIN

LABELS = ("in<ert> & 'quiet'", "active")


def network(featurizer="moleculenet", *, seed=0, classes=2, **options):
    generator = torch.Generator().manual_seed(seed)
    made = PolyGIN(WIDTHS[featurizer], classes, hidden_channels=5, **options)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return made


def model(featurizer="moleculenet", **facts):
    return MoleculeModel.of(network(featurizer), name="toy", labels=LABELS, featurizer=featurizer, **facts)
