"""ESOL: solubility in water. (MoleculeNet; Delaney 2004.) 1,128 molecules, one number each."""

from apexgnn.data.dataset import Spec
from apexgnn.data.moleculenet import GITHUB, SOURCE, read
from apexgnn.data.sources import RawFile

SPEC = Spec(
    name="esol",
    task="regression",
    features=9,
    classes=1,
    labels=("log10 of the solubility in mol/l",),
    source=SOURCE,
    licence="CC0-1.0 (as stated in the repository)",
    read=read,
    graphs=1128,
    splits=("random", "scaffold"),
    featurizer="moleculenet",
    elements=("C", "N", "O", "F", "P", "S", "Cl", "Br", "I"),
    files=(
        RawFile(
            "esol/raw/delaney-processed.csv",
            "8c06a76f0c6487d29ab0f903e6a7a7139f189ab3c1178f159c8be8964602f189",
            url=f"{GITHUB}/delaney-processed.csv",
        ),
    ),
)
