"""Drawn molecules: every atom wears its share, the legend says what it is, and no text of the user's becomes markup."""

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexgnn.data import molecule
from apexgnn.errors import InputError
from apexgnn.figures import draw_molecule, ink, shade

SVG = "{http://www.w3.org/2000/svg}"
ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
VALUES = [1.0, -2.0, 0.0, 0.5, -0.25, 0, 0, 0, 0, 2.0, -1.5, 0.75, 0.1]
HOSTILE = "</text><script>alert(1)</script> & \"'\x00\ud800]]>"


def discs(picture):
    """Fill and spoken number of each atom's disc."""
    found = {}
    for ellipse in ET.fromstring(picture).iter(f"{SVG}ellipse"):
        k = int(re.fullmatch(r"atom-(\d+)", ellipse.get("class"))[1])
        found[k] = (
            re.search("fill:(#\\w+)", ellipse.get("style"))[1].lower(),
            ellipse.find(f"{SVG}title").text,
        )
    return found


def texts(picture):
    return [element.text for element in ET.fromstring(picture).iter(f"{SVG}text")]


def test_every_atom_wears_its_share():
    found = discs(draw_molecule(ASPIRIN, VALUES))
    assert [found[k][0] for k in range(13)] == [shade(v, limit=2.0) for v in VALUES]
    assert found[1][1] == "atom 1, C: −2.00"
    assert found[2][1] == "atom 2, O: 0.00"


@pytest.mark.parametrize(
    "smiles, featurizer", [("O", "moleculenet"), ("OC", "mutagenicity"), ("[Na+].[Cl-]", "moleculenet")]
)
def test_letters_are_legible_on_their_discs(smiles, featurizer):
    atoms = molecule(smiles, featurizer).GetNumAtoms()
    for share in (-1.0, 1.0):
        picture = draw_molecule(smiles, [share] * atoms, featurizer=featurizer)
        letters = re.findall(r"<path class='atom-\d+' [^>]*fill='(#\w+)'/>", picture)
        assert letters
        assert set(letters) == {ink(shade(share, limit=1))} == {"#ffffff"}


def test_the_legend_names_the_scale_and_the_class():
    found = texts(draw_molecule(ASPIRIN, VALUES, label="permeable", title="Aspirin", subtitle="sum 1"))
    assert found[:3] == ["Aspirin", "sum 1", ASPIRIN]
    assert {"−2.00", "−1.00", "0.00", "1.00", "2.00", "opposes", "supports"} < set(found)
    assert "share of the logit of “permeable”" in found


def test_text_is_never_markup():
    picture = draw_molecule("CCO", [1, 2, 3], label=HOSTILE, title=HOSTILE, subtitle=HOSTILE)
    root = ET.fromstring(picture)
    assert not list(root.iter(f"{SVG}script"))
    assert "<script" not in picture
    assert sum("alert(1)" in text for text in texts(picture)) == 3
    assert picture.encode()


@given(st.text())
def test_any_text_gives_well_formed_xml(text):
    ET.fromstring(draw_molecule("C", [1.0], label=text, title=text, subtitle=text))


def test_nothing_is_fetched_or_run():
    root = ET.fromstring(draw_molecule(ASPIRIN, VALUES, label="x"))
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in {
            *("svg", "title", "rect", "text", "g", "ellipse", "path", "defs", "linearGradient", "stop")
        }
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert "href" not in name
            assert "url(" not in value or value == "url(#scale)"


@pytest.mark.parametrize("smiles", ["C", "[Na+]", "C" * 300, "[Na+].[Cl-]", "C/C=C\\C", "C[C@H](N)C(=O)O"])
def test_small_large_and_several(smiles):
    atoms = molecule(smiles).GetNumAtoms()
    assert len(discs(draw_molecule(smiles, [0.0] * atoms))) == atoms


def test_the_same_picture_is_the_same_text():
    assert draw_molecule(ASPIRIN, VALUES) == draw_molecule(ASPIRIN, VALUES)


def test_shares_must_fit_the_atoms():
    with pytest.raises(InputError, match="2 shares; expected 3"):
        draw_molecule("CCO", [1.0, 2.0])
