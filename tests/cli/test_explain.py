"""`apexgnn explain`, as a user calls it: one molecule, a table, and everything that can be wrong with either."""

import csv
import json
import sys
from xml.etree import ElementTree as ET

import pytest

from apexgnn import cli
from apexgnn.nn import GIN, save
from molecules.toys import LABELS, network


@pytest.fixture
def model(tmp_path):
    metadata = {"featurizer": "moleculenet", "labels": list(LABELS), "elements": ["C", "N", "O"]}
    save(network(), tmp_path / "model", metadata=metadata)
    return tmp_path / "model"


@pytest.fixture
def explain(monkeypatch, capsys, tmp_path):
    """The command here and now, in the test's folder: its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr(sys, "argv", ["apexgnn", "explain", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        out, err = capsys.readouterr()
        return caught.value.code or 0, out, err

    return call


def cells(out, heading):
    """The rows of the table with this heading."""
    lines = out[out.index(heading) :].splitlines()
    rows = [line.strip("│").split("│") for line in lines if line.startswith("│")]
    return [[cell.strip() for cell in row] for row in rows]


def test_one_molecule(model, explain):
    code, out, err = explain(model, "CCO", "--target", "active")
    assert (code, err) == (0, "")
    assert "degree 16: 8 Gauss–Legendre points" in out
    assert "atoms whose features are all zero" in out
    classes = cells(out, "probability")[:2]
    assert [row[0] for row in classes] == list(LABELS)
    assert sum(float(row[1].rstrip("%")) for row in classes) == pytest.approx(100, abs=0.11)
    assert "explained" in classes[1][3]
    atoms = cells(out, "bonded to")
    assert [row[:3] for row in atoms] == [["0", "C", "C1"], ["1", "C", "C0 O2"], ["2", "O", "C1"]]
    shares = [float(row[3]) for row in atoms]
    (line,) = [line for line in out.splitlines() if line.startswith("logit")]
    numbers = line.replace("−", "-").replace("- atoms ", "+ atoms -").replace(",", "").split()
    score, start, total, residual = (float(numbers[k]) for k in (1, 4, 7, 9))
    assert score == pytest.approx(start + total, abs=2e-4)
    assert sum(shares) == pytest.approx(total, abs=3e-4)
    assert abs(residual) < 1e-10
    assert score == pytest.approx(float(classes[1][2]), abs=1e-4)


def test_bars_point_the_way_of_the_sign(model, explain):
    _, out, _ = explain(model, "CC(=O)NC", "--sort")
    lines = [line for line in out[out.index("bonded to") :].splitlines() if line.startswith("│")]
    shares = [float(line.split("│")[4]) for line in lines]
    assert [abs(s) for s in shares] == sorted(map(abs, shares), reverse=True)
    for line, share in zip(lines, shares, strict=True):
        left, right = line.split("│")[5:7]
        assert len(left) == len(right) == 13
        assert not (right if share < 0 else left).strip()
    assert (left if shares[0] < 0 else right) is not None


def test_files_of_one_molecule(model, explain, tmp_path):
    code, out, _ = explain(model, "CCO", "--out", tmp_path / "o.json", "--svg", tmp_path / "o.svg")
    assert code == 0
    assert "o.json" in out
    assert "o.svg" in out
    assert json.loads((tmp_path / "o.json").read_text())["rows"][0]["input"] == {"smiles": "CCO"}
    texts = [text for text in ET.parse(tmp_path / "o.svg").getroot().itertext() if text.strip()]
    assert any(label in text for text in texts for label in LABELS)


def test_a_table_with_bad_rows(model, explain, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("id,structure\na,CCO\nb,C1CC\na,C[Se]C\nc,N\n")
    code, out, err = explain(model, path, "--out", tmp_path / "o.csv", "--svg", tmp_path / "drawn")
    assert code == 1
    assert "2 of 4 rows have errors" in err
    assert "row 2: " in out
    assert "Se in" in out
    with (tmp_path / "o.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["structure"], row["status"]) for row in rows] == [
        ("a", "CCO", "ok"),
        ("b", "C1CC", "error"),
        ("a", "C[Se]C", "error"),
        ("c", "N", "ok"),
    ]
    assert sorted(file.name for file in (tmp_path / "drawn").iterdir()) == ["row-1.svg", "row-4.svg"]
    code, out, _ = explain(model, path, "--id-column", "id")
    assert code == 1
    assert "row 3: got id 'a' of row 1 again" in out


def test_a_table_that_is_all_right_and_longer_than_the_screen(model, explain, tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text("x\tmol\n" + "1\tCCO\n" * 25)
    code, out, err = explain(model, path)
    assert code == 0
    assert "rows have errors" not in err
    assert "… and 5 more rows" in out


def test_a_column_may_be_named(model, explain, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("smiles,other\nC1CC,C\n")
    assert explain(model, path, "--smiles-column", "other")[0] == 0
    assert explain(model, path)[0] == 1


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["nowhere", "CCO"], "model: got 'nowhere'"),
        (["gin", "CCO"], "relu"),
        (["model", "C1CC"], "unclosed ring"),
        (["model", ""], "an empty string"),
        (["model", "CCO name"], "after whitespace"),
        (["model", "CC>>C"], "a reaction"),
        (["model", "*C"], "dummy atom"),
        (["model", "C[Si]C"], "Si in"),
        (["model", "C" * 14_000], "14,000 characters"),
        (["model", "missing.csv"], "missing.csv"),
        (["model", "empty.csv"], "empty file"),
        (["model", "latin.csv"], "line 2: got bytes that are not UTF-8"),
        (["model", "open.csv"], "close the quote"),
        (["model", "good.csv", "--smiles-column", "SMI"], "no column 'SMI'"),
        (["model", "good.csv", "--out", "good.csv"], "the input itself"),
        (["model", "good.csv", "--svg", "good.csv"], "--svg"),
        (["model", "C", "--target", "loud"], "'active'"),
        (["model", "C", "--baseline", "median"], "'median'"),
        (["model", "C", "--baseline", "average"], "does not know"),
        (["model", "C", "--baseline", "1,2"], "[2]"),
        (["model", "C", "--baseline", "nan"], "NaN"),
        (["model", "C", "--out", "o.xlsx"], "'.xlsx'"),
        (["model", "C", "--out", "nowhere/o.csv"], "--out: got nowhere/o.csv (No such file"),
        (["model", "C", "--svg", "nowhere/o.svg"], "--svg: got nowhere/o.svg (No such file"),
    ],
)
def test_refusals_are_one_message_and_exit_code_2(arguments, word, model, explain, tmp_path):
    save(
        GIN(9, 2, hidden_channels=3),
        tmp_path / "gin",
        metadata={"featurizer": "moleculenet", "labels": ["a", "b"]},
    )
    for name, content in {
        "empty.csv": b"",
        "latin.csv": "smiles\nCCO größer\n".encode("latin-1"),
        "open.csv": b'smiles,x\nC,"open\n',
        "good.csv": b"smiles\nC\n",
    }.items():
        (tmp_path / name).write_bytes(content)
    code, _, err = explain(*arguments)
    assert code == 2
    assert err.startswith("error: ")
    assert word in err
    assert len(err.splitlines()) == 1
    assert (tmp_path / "good.csv").read_text() == "smiles\nC\n"


def test_a_baseline_without_meaning_is_said_to_be_one(model, explain):
    """A polynomial of degree 16 is huge where no training data are."""
    _, out, _ = explain(model, "CCO", "--baseline", "1000")
    assert "another --baseline says more" in out
