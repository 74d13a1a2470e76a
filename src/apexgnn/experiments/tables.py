"""Tables on disk: CSV with fixed columns, Markdown for people, and the origin of both."""

from __future__ import annotations

import csv
import io
import json
import math
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from apexgnn import __version__
from apexgnn.files import write_atomically
from apexgnn.training.run import commit, machine

Row = Mapping[str, Any]


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Rows under exactly these columns; numbers with six significant digits.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv(Path(folder) / "a.csv", ["x", "y"], [{"x": "p", "y": 1 / 3}])
    ...     (Path(folder) / "a.csv").read_text()
    'x,y\\np,0.333333\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row[column]) for column in columns])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.getvalue())


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, or none where there is no file.

    >>> read_csv(Path("nowhere.csv"))
    []
    """
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def markdown(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table for people.

    >>> print(markdown(["a", "b"], [(1, 2)]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [columns, ["---"] * len(columns), *rows]
    texts = ["| " + " | ".join(str(value) for value in line) + " |" for line in lines]
    return "\n".join(texts).replace("| --- |", "|---|").replace(" --- |", "---|")


def between(mean: float, low: float, high: float, digits: int = 3) -> str:
    """A mean with its interval, or a dash where there is none.

    >>> between(0.5, 0.25, 0.75, 2), between(math.nan, math.nan, math.nan)
    ('0.50 [0.25, 0.75]', '–')
    """
    if math.isnan(mean):
        return "–"
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def record(path: Path, name: str, details: Mapping[str, Any]) -> None:
    """Note in `provenance.json` how a result was made: command, commit, machine, versions, settings."""
    everything = json.loads(path.read_text()) if path.exists() else {}
    everything[name] = {
        "command": " ".join(["apexgnn", *sys.argv[1:]]),
        "commit": commit(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "threads": torch.get_num_threads(),
        "versions": {
            **{one: version(one) for one in ("torch", "torch_geometric", "numpy", "captum")},
            "apexgnn": __version__,
            "python": platform.python_version(),
        },
        **details,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(dict(sorted(everything.items())), indent=1, ensure_ascii=False) + "\n")
