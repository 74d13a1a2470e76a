"""Lipophilicity: octanol/water distribution coefficient. (MoleculeNet; ChEMBL.) 4,200 molecules."""

from apexgnn.data.dataset import Spec
from apexgnn.data.moleculenet import GITHUB, SOURCE, read
from apexgnn.data.sources import RawFile

SPEC = Spec(
    name="lipo",
    task="regression",
    features=9,
    classes=1,
    labels=("logD at pH 7.4",),
    source=SOURCE,
    licence="CC0-1.0 (as stated in the repository)",
    read=read,
    graphs=4200,
    splits=("random", "scaffold"),
    featurizer="moleculenet",
    elements=("B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Se", "Br", "I"),
    files=(
        RawFile(
            "lipo/raw/Lipophilicity.csv",
            "aed41590cb30609d51d8e08ad3ff06495a76e80e211358801f596b10da69bacd",
            url=f"{GITHUB}/Lipophilicity.csv",
        ),
    ),
)
