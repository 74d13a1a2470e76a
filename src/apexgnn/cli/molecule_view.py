"""An explained molecule on the terminal: the prediction, the part of every atom in it, and why that is exact."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from apexgnn.cli import certify as certifying
from apexgnn.data import molecule
from apexgnn.figures import draw_molecule
from apexgnn.molecules import Explained, Explanation, MoleculeModel

BAR, SHOWN, LONGEST = (
    12,
    20,
    44,
)  # half a bar's width; rows of a table on the screen; characters of SMILES there
FAR = 100.0  # times the molecule's score, or 1
LARGE = 1e5  # from here on numbers are written as powers of ten
MEANING = {
    "average": "the same bonds between average atoms of the training data",
    "mean": "the same bonds between average atoms of this molecule",
    "zero": "the same bonds between atoms whose features are all zero",
}


def show(console: Console, model: MoleculeModel, found: Explanation, *, largest_first: bool = False) -> None:
    """Everything about one molecule."""
    console.print(Text(f"{found.smiles}   {len(found.symbols)} atoms, model {model.name}"), soft_wrap=True)
    console.print(classes(found))
    console.print(atoms(model, found, largest_first=largest_first))
    console.print(Text(equation(found, digits=4)), soft_wrap=True)
    console.print(Text(f"baseline: {MEANING.get(found.baseline, found.baseline)}"), soft_wrap=True)
    if far(found):
        console.print(
            "The baseline scores far from any molecule, and the shares speak of that distance: another --baseline "
            "says more.",
            style="yellow",
            soft_wrap=True,
        )
    console.print(certifying.summary(model.certificate), soft_wrap=True)


def classes(found: Explanation) -> Table:
    """Probability and logit of every class."""
    drawn = Table()
    drawn.add_column("class")
    drawn.add_column("probability", justify="right")
    drawn.add_column("logit", justify="right")
    drawn.add_column("")
    for k, (label, share, logit) in enumerate(
        zip(found.labels, found.probabilities.tolist(), found.logits.tolist(), strict=True)
    ):
        notes = ["predicted"] * (k == found.predicted) + ["explained"] * (k == found.target)
        style = "bold" if k == found.predicted else ""
        drawn.add_row(Text(label), f"{share:.1%}", f"{logit:+.4f}", ", ".join(notes), style=style)
    return drawn


def atoms(model: MoleculeModel, found: Explanation, *, largest_first: bool = False) -> Table:
    """The signed share of every atom, with a bar to the left of the middle if it opposes, to the right if not."""
    drawn = Table()
    drawn.add_column("atom", justify="right")
    drawn.add_column("element")
    drawn.add_column("bonded to")
    drawn.add_column(Text(f"share of “{found.labels[found.target]}”"), justify="right")
    drawn.add_column(f"{'opposes':>{BAR}}│{'supports':<{BAR}}", no_wrap=True)
    order = list(range(len(found.shares)))
    if largest_first:
        order.sort(key=lambda k: -abs(found.shares[k]))
    limit = max(map(abs, found.shares)) or 1.0
    mol = molecule(found.smiles, model.featurizer)
    for k in order:
        beside = mol.GetAtomWithIdx(k).GetNeighbors()
        named = " ".join(f"{atom.GetSymbol()}{atom.GetIdx()}" for atom in beside)
        share = found.shares[k]
        drawn.add_row(str(k), found.symbols[k], named, f"{share:+.4f}", _bar(share / limit))
    return drawn


def equation(found: Explanation, *, digits: int) -> str:
    """f(X) = f(X′) + Σφ in numbers, with the residual."""
    result = found.attribution
    score, start, total = float(result.score), float(result.baseline_score), sum(found.shares)
    sign = "-" if total < 0 else "+"
    kind = f".{digits}f" if max(map(abs, (score, start))) < LARGE else f".{digits + 2}g"
    return (
        f"logit {score:+{kind}} = baseline {start:+{kind}} {sign} atoms {abs(total):{kind}}, "
        f"residual {float(result.residual):.0e}"
    ).replace("-", "−")


def far(found: Explanation) -> bool:
    """Whether the baseline's score dwarfs the molecule's, as it can where no training data are near."""
    return abs(float(found.attribution.baseline_score)) > FAR * max(1.0, abs(float(found.attribution.score)))


def listing(items: Sequence[Explained]) -> Table:
    """The first rows of a table, one line each."""
    drawn = Table()
    drawn.add_column("row", justify="right")
    drawn.add_column("molecule")
    drawn.add_column("prediction")
    drawn.add_column("p", justify="right")
    drawn.add_column("residual", justify="right")
    for item in items[:SHOWN]:
        smiles, found = Text(_short(item.row.smiles)), item.explanation
        if found is None:
            drawn.add_row(str(item.row.number), smiles, Text("error", style="red"), "", "")
            continue
        probability = float(found.probabilities[found.predicted])
        residual = f"{float(found.attribution.residual):.0e}"
        label = Text(found.labels[found.predicted])
        drawn.add_row(str(item.row.number), smiles, label, f"{probability:.1%}", residual)
    return drawn


def picture(model: MoleculeModel, found: Explanation) -> str:
    """The drawing, as SVG."""
    label = found.labels[found.target]
    probability = float(found.probabilities[found.target])
    return draw_molecule(
        found.smiles,
        found.shares,
        featurizer=model.featurizer,
        label=label,
        title=f"“{label}”, {probability:.1%}",
        subtitle=equation(found, digits=2),
    )


def _bar(share: float) -> Text:
    """A bar of eighths of a character, from the middle to one side."""
    eighths = round(abs(share) * BAR * 8)
    whole, rest = divmod(eighths, 8)
    if share > 0:
        right = "█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()
        return Text(" " * BAR + "│" + right.ljust(BAR), style="red")
    left = ("▐" if rest >= 4 else "") + "█" * whole
    return Text(left.rjust(BAR) + "│" + " " * BAR, style="blue")


def _short(smiles: str) -> str:
    text = smiles if smiles.isprintable() else repr(smiles)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
