"""Tables with a SMILES column: read row by row, written so that a spreadsheet cannot run them.

A table is comma-, tab- or semicolon-separated (whichever its header has most of), UTF-8 with or without a
byte-order mark, or UTF-16 with one; quoted cells may hold line breaks. What is wrong with the whole table
(no such column, another encoding, an open quote) is an error; what is wrong with one row becomes the `error`
of that row, and the others go on.

On export a text cell that a spreadsheet would take for a formula gets a leading apostrophe; numbers do not.
"""

from __future__ import annotations

import codecs
import csv
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from torch_geometric.data import Data

from apexgnn.data.molecules import molecule_graph
from apexgnn.errors import DataError, MoleculeError
from apexgnn.files import write_atomically

SMILES_COLUMNS = ("smiles", "canonical_smiles", "mol", "structure")


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its number (1 is the first below the header), all its cells, its SMILES, and what is wrong."""

    number: int
    cells: dict[str, str]
    smiles: str
    error: str = ""

    @property
    def status(self) -> str:
        """ "ok" or "error"."""
        return "error" if self.error else "ok"


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is read anew by every iteration, one row at a time.

    Attributes:
        path: the file.
        columns: the header.
        smiles_column: which of them holds the molecules.
        id_column: which of them must not repeat, if any.
    """

    path: Path
    columns: tuple[str, ...]
    smiles_column: str
    id_column: str | None
    encoding: str
    delimiter: str

    def __iter__(self) -> Iterator[Row]:
        seen: dict[str, int] = {}
        rows = _records(self.path, self.encoding, self.delimiter)
        next(rows)
        for number, fields in enumerate((fields for fields in rows if fields), start=1):
            cells = dict(zip(self.columns, fields, strict=False))
            error = ""
            if len(fields) != len(self.columns):
                error = f"row {number}: got {len(fields)} cells; expected {len(self.columns)}."
                if beyond := fields[len(self.columns) :]:
                    error += f" Beyond the header: {', '.join(map(repr, beyond))}."
            elif self.id_column is not None:
                first = seen.setdefault(cells[self.id_column], number)
                if first != number:
                    error = (
                        f"row {number}: got {self.id_column} {cells[self.id_column]!r} of row {first} again."
                    )
            yield Row(number, cells, cells.get(self.smiles_column, ""), error)


def read_table(
    path: str | os.PathLike[str], smiles_column: str | None = None, *, id_column: str | None = None
) -> Table:
    """Open a table and find its SMILES column.

    Args:
        path: the file.
        smiles_column: by default the one called smiles, canonical_smiles, mol or structure, in any case.
        id_column: a column that must not repeat; a row that repeats it gets an error. Without it rows are
            known by number, and repeated names do no harm.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "in.csv"
    ...     _ = path.write_text("name,SMILES\\nethanol,CCO\\nbroken\\n")
    ...     [(row.smiles, row.status, row.error) for row in read_table(path)]
    [('CCO', 'ok', ''), ('', 'error', 'row 2: got 1 cells; expected 2.')]
    """
    path = Path(path)
    encoding = _encoding(path)
    header, delimiter = _header(path, encoding)
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise DataError(
            str(path), got=f"the column {repeated[0]!r} more than once", expected="unique columns"
        )
    if smiles_column is None:
        named = [name for name in header if name.strip().lower() in SMILES_COLUMNS]
        if len(named) != 1:
            raise DataError(
                str(path),
                got=f"{len(named)} SMILES columns among {', '.join(map(repr, header))}",
                expected="one called " + ", ".join(SMILES_COLUMNS),
                fix="name the column",
            )
        smiles_column = named[0]
    for column in (smiles_column, id_column):
        if column is not None and column not in header:
            raise DataError(
                str(path), got=f"no column {column!r}", expected="one of " + ", ".join(map(repr, header))
            )
    return Table(path, tuple(header), smiles_column, id_column, encoding, delimiter)


def read_molecules(
    table: Iterable[Row], featurizer: str = "moleculenet", *, elements: Collection[str] | None = None
) -> Iterator[tuple[Row, Data | None]]:
    """Each row with its graph; a row without one says why in `row.error`.

    >>> rows = [Row(1, {}, "CCO"), Row(2, {}, "C1CC")]
    >>> [(row.status, data is not None) for row, data in read_molecules(rows)]
    [('ok', True), ('error', False)]
    """
    for row in table:
        if row.error:
            yield row, None
            continue
        try:
            yield row, molecule_graph(row.smiles, featurizer, elements=elements)
        except MoleculeError as error:
            yield replace(row, error=f"row {row.number}: {error}"), None


def write_table(
    path: str | os.PathLike[str], rows: Iterable[Mapping[str, object]], *, columns: Sequence[str]
) -> None:
    """Write a comma-separated UTF-8 table, whole or not at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "out.csv"
    ...     write_table(path, [{"name": "=1+1", "score": -0.5}], columns=["name", "score"])
    ...     print(path.read_text())
    name,score
    '=1+1,-0.5
    <BLANKLINE>
    """
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([harmless(name) for name in columns])
    for row in rows:
        writer.writerow([harmless(row.get(name)) for name in columns])
    write_atomically(path, text.getvalue())


def harmless(cell: object) -> object:
    """`cell`, with an apostrophe before a text that a spreadsheet would run as a formula.

    >>> harmless("@SUM(A1)"), harmless("-1.18"), harmless("CCO")
    ("'@SUM(A1)", '-1.18', 'CCO')
    """
    if not isinstance(cell, str) or not (cell.lstrip()[:1] in {*"=+-@"} or cell[:1] in {*"\t\r\n"}):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell


def _encoding(path: Path) -> str:
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise DataError(str(path), got=str(error), expected="a readable file") from error
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


def _header(path: Path, encoding: str) -> tuple[list[str], str]:
    """The column names, and the separator that cuts the header into most of them."""
    headers = {mark: next(_records(path, encoding, mark, strict=False), []) for mark in ",\t;"}
    delimiter = max(headers, key=lambda mark: len(headers[mark]))
    if not headers[delimiter]:
        raise DataError(str(path), got="an empty file", expected="a table with a header")
    return headers[delimiter], delimiter


def _records(path: Path, encoding: str, delimiter: str, *, strict: bool = True) -> Iterator[list[str]]:
    """The file's records; what cannot be read is an error that names the place."""
    reader = csv.reader(_lines(path, encoding), delimiter=delimiter, strict=strict)
    try:
        yield from reader
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num}",
            got=str(error),
            expected="well-formed cells",
            fix="close the quote, and double quotes inside quoted cells",
        ) from error


def _lines(path: Path, encoding: str) -> Iterator[str]:
    """The file's lines with their ends; UTF-8 is decoded line by line, to name the line that is not."""
    if encoding == "utf-16":
        with path.open(newline="", encoding=encoding) as text:
            yield from text
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                content = line.decode(encoding if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{path}, line {number}",
                    got=f"bytes that are not UTF-8 ({error.reason})",
                    expected="UTF-8 text",
                    fix="save the table as UTF-8",
                ) from error
            yield from StringIO(content, newline="")
