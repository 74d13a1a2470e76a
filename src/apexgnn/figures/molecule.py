"""A molecule whose atoms wear their shares of a logit: an SVG picture that needs nothing beside itself.

The structure is RDKit's drawing. Under atom i lies a disc with the colour of its share φ_i on the diverging scale,
white for none; pointing at it shows the number. Small figures are the atoms' numbers in the SMILES string. Below
stand the scale, always symmetric about zero, and what it measures.

All text that comes from outside is escaped, and nothing in the picture is fetched or run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from apexgnn.data import molecule
from apexgnn.errors import InputError
from apexgnn.figures.graph import number
from apexgnn.figures.palette import DARK, GREY, PALE, STOPS, ink, shade

WIDTH, TALL, MARGIN = 640, 420, 20
HEAD, FOOT = 80, 74  # above and below the structure
CHARACTERS = 82  # of small text that fit on one line
NUMBERED = 60  # atoms; in larger molecules their numbers would hide the structure
HALO = "stroke='#ffffff' stroke-width='2.5' paint-order='stroke'"  # keeps small figures legible on any disc
FONT = "font-family='DejaVu Sans, Verdana, Arial, sans-serif'"


def draw_molecule(
    smiles: str,
    values: Sequence[float],
    *,
    featurizer: str = "moleculenet",
    label: str = "",
    title: str = "",
    subtitle: str = "",
) -> str:
    """The picture as the text of an SVG file.

    Args:
        smiles: the molecule.
        values: one signed share for each of its atoms, as `featurizer` counts them.
        featurizer: "moleculenet", or "mutagenicity" with its explicit hydrogens.
        label: the class whose logit is shared out.
        title, subtitle: one line each, above the molecule and its SMILES string.

    >>> picture = draw_molecule("CCO", [0.5, 0.0, -1.0], label="soluble & safe")
    >>> picture.startswith("<svg "), "soluble &amp; safe" in picture, "<title>atom 2, O: −1.00</title>" in picture
    (True, True, True)
    """
    mol = molecule(smiles, featurizer)
    if len(values) != mol.GetNumAtoms():
        raise InputError("values", got=f"{len(values)} shares", expected=f"{mol.GetNumAtoms()}, one per atom")
    limit = max(map(abs, values), default=0.0) or 1.0
    fills = [shade(value, limit=limit) for value in values]
    named = f"{title or 'Signed shares of the atoms'}: {smiles}"
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{HEAD + TALL + FOOT}' "
            f"viewBox='0 0 {WIDTH} {HEAD + TALL + FOOT}' role='img'>",
            f"<title>{_text(named)}</title>",
            "<rect width='100%' height='100%' fill='#ffffff'/>",
            _line(_short(title, 60), MARGIN, 28, size=16, colour=DARK, bold=True),
            _line(_short(subtitle), MARGIN, 50, size=12, colour=DARK),
            _line(_short(smiles), MARGIN, 69, size=12, colour=GREY),
            f"<g transform='translate(0 {HEAD})'>",
            _structure(mol, fills, [number(value, limit=limit) for value in values]),
            "</g>",
            _legend(limit, label),
            "</svg>",
            "",
        ]
    )


def _structure(mol: Any, fills: list[str], numbers: list[str]) -> str:
    """RDKit's drawing with discs under all atoms, their numbers as titles, and letters in legible ink."""
    from rdkit.Chem.Draw import rdMolDraw2D

    drawer = rdMolDraw2D.MolDraw2DSVG(WIDTH, TALL)
    options: Any = drawer.drawOptions()
    options.useBWAtomPalette()
    options.clearBackground = False
    options.padding = 0.06
    options.maxFontSize = 18
    options.fixedBondLength = 42  # at most: small molecules do not fill the page with three atoms
    options.addAtomIndices = len(fills) <= NUMBERED
    atoms = list(range(len(fills)))
    rdMolDraw2D.PrepareAndDrawMolecule(
        drawer,
        mol,
        highlightAtoms=atoms,
        highlightAtomColors={k: _rgb(fills[k]) for k in atoms},
        highlightAtomRadii=dict.fromkeys(atoms, 0.36),
        highlightBonds=[],
        kekulize=True,
    )
    drawer.FinishDrawing()
    drawing = drawer.GetDrawingText().partition("<!-- END OF HEADER -->")[2].rpartition("</svg>")[0]

    def disc(found: re.Match[str]) -> str:
        k = int(found[2])
        said = f"<title>atom {k}, {mol.GetAtomWithIdx(k).GetSymbol()}: {numbers[k]}</title>"
        return f"{found[1]}>{said}</ellipse>"

    def letter(found: re.Match[str]) -> str:
        return f"{found[1]}fill='{ink(fills[int(found[2])])}'/>"

    drawing = drawing.replace("<path class='note'", f"<path class='note' {HALO}")
    drawing = re.sub(r"(<ellipse [^>]*class='atom-(\d+)'[^>]*?)\s*/>", disc, drawing)
    return re.sub(r"(<path class='atom-(\d+)' [^>]*)fill='#000000'/>", letter, drawing).strip()


def _legend(limit: float, label: str) -> str:
    """The scale with five numbers, and what it measures."""
    left, wide, top = 180, WIDTH - 360, HEAD + TALL + 14
    stops = "".join(
        f"<stop offset='{k / (len(STOPS) - 1):.3f}' stop-color='{colour}'/>" for k, colour in enumerate(STOPS)
    )
    what = f"share of the logit of “{_short(label, 50)}”" if label else "share of the score"
    ticks = [
        _line(
            number(limit * (k - 2) / 2, limit=limit), left + wide * k / 4, top + 27, size=11, anchor="middle"
        )
        for k in range(5)
    ]
    return "\n".join(
        [
            f"<defs><linearGradient id='scale'>{stops}</linearGradient></defs>",
            f"<rect x='{left}' y='{top}' width='{wide}' height='13' fill='url(#scale)' stroke='{PALE}'/>",
            *ticks,
            _line("opposes", left - 10, top + 11, size=12, colour=STOPS[0], anchor="end"),
            _line("supports", left + wide + 10, top + 11, size=12, colour=STOPS[-1]),
            _line(what, WIDTH / 2, top + 47, size=12, colour=DARK, anchor="middle"),
        ]
    )


def _line(
    text: str,
    x: float,
    y: float,
    *,
    size: int,
    colour: str = GREY,
    anchor: str = "start",
    bold: bool = False,
) -> str:
    weight = " font-weight='bold'" * bold
    place = f"x='{x:g}' y='{y:g}' text-anchor='{anchor}'"
    return f"<text {place} font-size='{size}'{weight} {FONT} fill='{colour}'>{_text(text)}</text>"


def _text(text: str) -> str:
    """Escaped, and without the characters that XML cannot hold."""
    return escape(re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text))


def _short(text: str, most: int = CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue
