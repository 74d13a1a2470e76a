"""Explanations to files: every column of the input, a status for every row, nothing that a spreadsheet would run."""

import csv
import json

import pytest

from apexgnn.data import read_table
from apexgnn.errors import InputError
from apexgnn.molecules import explain_rows, write_explanations
from molecules.toys import LABELS, model

TEXT = """\
name,smiles,note
=1+1,CCO,"two
lines, one cell"
b,C1CC,@SUM(A1)
b,[Na+].[Cl-],größer
short
"""


@pytest.fixture
def table(tmp_path):
    (tmp_path / "in.csv").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())  # with a byte-order mark
    return read_table(tmp_path / "in.csv")


def written(table, path, toy=None):
    toy = toy or model()
    return write_explanations(path, explain_rows(toy, table), toy, columns=table.columns)


def test_csv_keeps_every_column_and_says_how_each_row_went(table, tmp_path):
    with written(table, tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert [row["status"] for row in found] == ["ok", "error", "ok", "error"]
    assert [row["name"] for row in found] == ["'=1+1", "b", "b", "short"]
    assert [row["note"] for row in found] == ["two\nlines, one cell", "'@SUM(A1)", "größer", ""]
    assert [bool(row["error"]) for row in found] == [False, True, False, True]
    assert [row["shares"] == "" for row in found] == [False, True, False, True]
    assert {row["degree"] for row in found} == {"16"}
    items = [item.explanation for item in explain_rows(model(), table)]
    for row, item in zip(found, items, strict=True):
        if item is None:
            continue
        assert json.loads(row["shares"]) == item.shares
        assert json.loads(row["atoms"]) == list(item.symbols)
        assert row["prediction"] == item.labels[item.predicted]
        assert float(row[f"probability: {LABELS[1]}"]) == float(item.probabilities[1])
        assert float(row[f"logit: {LABELS[0]}"]) == float(item.logits[0])
        gained = float(row["score"]) - float(row["baseline score"])
        assert sum(json.loads(row["shares"])) == pytest.approx(gained, abs=1e-9)


def test_json_has_the_same_and_the_cells_as_they_were(table, tmp_path):
    found = json.loads(written(table, tmp_path / "out.json").read_text())
    assert (found["model"]["model"], found["model"]["degree"], found["model"]["points"]) == ("toy", 16, 8)
    assert [row["status"] for row in found["rows"]] == ["ok", "error", "ok", "error"]
    assert found["rows"][0]["input"] == {"name": "=1+1", "smiles": "CCO", "note": "two\nlines, one cell"}
    assert found["rows"][1]["input"]["note"] == "@SUM(A1)"
    assert len(found["rows"][0]["shares"]) == 3
    assert "shares" not in found["rows"][1]


def test_columns_of_the_input_that_have_our_names_are_not_lost(tmp_path):
    (tmp_path / "in.csv").write_text("smiles,status,shares\nC,mine,too\n")
    with written(read_table(tmp_path / "in.csv"), tmp_path / "out.csv").open(newline="") as file:
        (found,) = csv.DictReader(file)
    assert (found["status"], found["shares"]) == ("mine", "too")
    assert found["apexgnn status"] == "ok"
    assert len(json.loads(found["apexgnn shares"])) == 1


def test_an_empty_table_is_a_table(tmp_path):
    (tmp_path / "in.csv").write_text("smiles\n")
    path = written(read_table(tmp_path / "in.csv"), tmp_path / "out.csv")
    assert path.read_text().startswith("smiles,status,error,prediction,")
    assert len(path.read_text().splitlines()) == 1


def test_a_failure_in_the_middle_leaves_the_earlier_file(table, tmp_path):
    (tmp_path / "out.csv").write_text("before")

    def failing():
        yield from list(explain_rows(model(), table))[:2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_explanations(tmp_path / "out.csv", failing(), model(), columns=table.columns)
    assert (tmp_path / "out.csv").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_another_ending_is_refused(table, tmp_path):
    with pytest.raises(InputError, match=r"'\.csv', '\.json'"):
        written(table, tmp_path / "out.parquet")
