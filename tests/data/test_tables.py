"""Tables as they come: encodings, quotes, wrong rows; and as they go: nothing a spreadsheet would run."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexgnn.data import read_molecules, read_table, write_table
from apexgnn.data.tables import harmless
from apexgnn.errors import DataError


def table(tmp_path, content, name="in.csv", **kw):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, **kw)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(tmp_path, encoding):
    found = table(tmp_path, "smiles,wirkung\nCCO,größer\n".encode(encoding))
    assert found.columns == ("smiles", "wirkung")
    assert [row.cells for row in found] == [{"smiles": "CCO", "wirkung": "größer"}]


def test_another_encoding_is_named_with_its_line(tmp_path):
    rows = table(tmp_path, "smiles,name\nCCO,a\nCC,größer\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"in\.csv, line 3: got bytes that are not UTF-8"):
        list(rows)


@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_separators(tmp_path, mark):
    found = table(tmp_path, f"id{mark}smiles\n1{mark}CCO\n")
    assert [row.smiles for row in found] == ["CCO"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path, end):
    assert [row.smiles for row in table(tmp_path, end.join(["smiles", "CCO", "C"]))] == ["CCO", "C"]


def test_quoted_line_breaks_stay_in_their_cell(tmp_path):
    found = list(table(tmp_path, 'smiles,note\nCCO,"two\nlines, one cell"\nCC,x\n'))
    assert [row.number for row in found] == [1, 2]
    assert found[0].cells["note"] == "two\nlines, one cell"


def test_a_quoted_header_with_another_separator_inside(tmp_path):
    assert table(tmp_path, '"a;b",smiles\n1,CCO\n').columns == ("a;b", "smiles")


@pytest.mark.parametrize(
    "content, why",
    [
        ("name,formula\nx,C\n", "0 SMILES columns among 'name', 'formula'"),
        ("smiles,mol\nC,C\n", "2 SMILES columns"),
        ("smiles,a,a\nC,1,2\n", "'a' more than once"),
        ("", "empty file"),
    ],
)
def test_tables_without_a_clear_column(tmp_path, content, why):
    with pytest.raises(DataError, match=why):
        table(tmp_path, content)


def test_a_missing_column_is_named(tmp_path):
    with pytest.raises(DataError, match="no column 'SMI'; expected one of 'smiles', 'y'"):
        table(tmp_path, "smiles,y\nC,1\n", smiles_column="SMI")


def test_a_missing_file():
    with pytest.raises(DataError, match="nowhere"):
        read_table("nowhere.csv")


def test_an_open_quote_is_an_error_with_its_line(tmp_path):
    with pytest.raises(DataError, match="line 3"):
        list(table(tmp_path, 'smiles,note\nCCO,a\nCC,"open\n'))


def test_wrong_rows_do_not_stop_the_others(tmp_path):
    rows = table(tmp_path, "smiles,y\nCCO,1\n\nC1CC,2\nCC\nCC,1,2\n,3\nC,4\n")
    found = list(read_molecules(rows))
    assert [row.status for row, _ in found] == ["ok", "error", "error", "error", "error", "ok"]
    assert [data is not None for _, data in found] == [True, False, False, False, False, True]
    errors = [row.error for row, _ in found if row.error]
    assert [e.partition(":")[0] for e in errors] == ["row 2", "row 3", "row 4", "row 5"]
    for error, part in zip(errors, ["unclosed ring", "1 cells", "3 cells", "empty string"], strict=True):
        assert part in error


def test_cells_beyond_the_header_are_told(tmp_path):
    (row,) = table(tmp_path, "smiles,y\nCC,1,2,=3\n")
    assert row.error == "row 1: got 4 cells; expected 2. Beyond the header: '2', '=3'."
    assert row.cells == {"smiles": "CC", "y": "1"}


def test_repeated_ids(tmp_path):
    content = "id,smiles\na,C\nb,CC\na,CCC\n"
    assert [row.status for row in table(tmp_path, content)] == ["ok"] * 3
    found = list(table(tmp_path, content, id_column="id"))
    assert [row.status for row in found] == ["ok", "ok", "error"]
    assert "id 'a' of row 1" in found[2].error


def test_a_table_can_be_read_twice(tmp_path):
    rows = table(tmp_path, "smiles\nC\nCC\n")
    assert list(rows) == list(rows)


@pytest.mark.parametrize("cell", ["=1+1", "+1+1", "-1+1", "@A1", " =1", "\t=1", "\rx", "=HYPERLINK(0)"])
def test_formulas_are_disarmed(tmp_path, cell):
    write_table(tmp_path / "out.csv", [{"a": cell, cell: cell}], columns=["a", cell])
    with (tmp_path / "out.csv").open(newline="") as file:
        header, row = csv.reader(file)
    assert row == ["'" + cell] * 2
    assert header[1] == "'" + cell


@pytest.mark.parametrize("cell", ["-1.18", "+3", "1e-5", -0.5, 3, "CCO", "[Cl-]", "#", None])
def test_numbers_and_molecules_stay(cell):
    assert harmless(cell) == cell


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_no_cell_starts_a_formula(cells):
    for cell in map(harmless, cells):
        if cell.strip()[:1] in tuple("=+-@") and cell.strip():
            float(cell)


def test_what_was_written_reads_back(tmp_path):
    rows = [{"smiles": "CCO", "note": 'a "quoted", cell\nof two lines'}, {"smiles": "C", "note": "ß"}]
    write_table(tmp_path / "t.csv", rows, columns=["smiles", "note"])
    assert [row.cells for row in read_table(tmp_path / "t.csv")] == rows
