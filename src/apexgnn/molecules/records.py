"""Explanations to files: one record for every row, also for those that failed.

    .csv    all columns of the input, then the fields below; text that a spreadsheet would run is disarmed
    .json   {"model": what explained them, "rows": [{"row": number, "input": {its cells}, the fields below}]}

    status, error             "ok" or "error", and then why
    prediction                label of the class with the largest logit
    probability: L, logit: L  of every class L
    target                    label of the class whose logit is explained
    baseline                  what the path starts from: average, mean, zero, or numbers
    score, baseline score     f(X), f(X′)
    residual                  Σφ − (f(X) − f(X′))
    atoms, shares             element and signed share φ of each atom, in the order of the SMILES string
    model, degree, points     name of the model, and its certificate

A field whose name is a column of the input already has "apexgnn " before it in CSV.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from apexgnn.data import write_table
from apexgnn.errors import InputError
from apexgnn.files import write_atomically
from apexgnn.molecules.explaining import Explained, Explanation
from apexgnn.molecules.model import MoleculeModel

ENDINGS = (".csv", ".json")


def write_explanations(
    path: str | os.PathLike[str],
    items: Iterable[Explained],
    model: MoleculeModel,
    *,
    columns: Sequence[str] = ("smiles",),
) -> Path:
    """Write every row with its explanation, as CSV or JSON by the ending of the path, whole or not at all.

    Args:
        path: the file; its folder must exist.
        items: from `explain_rows`.
        model: the one that explained them.
        columns: of the input, in its order.

    >>> import tempfile
    >>> from apexgnn.data import Row
    >>> from apexgnn.molecules import explain_rows
    >>> from apexgnn.nn import PolyGIN
    >>> network = PolyGIN(9, 2, hidden_channels=4)
    >>> model = MoleculeModel.of(network, name="toy", labels=["no", "yes"], featurizer="moleculenet")
    >>> rows = [Row(1, {"smiles": "CO", "id": "a"}, "CO"), Row(2, {"smiles": "C1", "id": "b"}, "C1")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_explanations(
    ...         Path(folder) / "out.json", explain_rows(model, rows), model, columns=["smiles", "id"])
    ...     [(row["input"]["id"], row["status"]) for row in json.loads(path.read_text())["rows"]]
    [('a', 'ok'), ('b', 'error')]
    """
    path = check_ending(path)
    if path.suffix.lower() == ".json":
        rows = [{"row": item.row.number, "input": item.row.cells} | _fields(item) for item in items]
        content = {"model": _about(model), "rows": rows}
        write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return path
    own = {field: f"apexgnn {field}" if field in columns else field for field in _names(model)}
    flat = (item.row.cells | {own[key]: _cell(value) for key, value in _all(item, model)} for item in items)
    write_table(path, flat, columns=[*columns, *own.values()])
    return path


def check_ending(path: str | os.PathLike[str]) -> Path:
    """`path`, if its ending names a format, so that this is known before the work is done.

    >>> check_ending("out.xlsx")
    Traceback (most recent call last):
        ...
    apexgnn.errors.InputError: out: got '.xlsx'; expected one of '.csv', '.json'.
    """
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise InputError("out", got=repr(path.suffix), expected="one of " + ", ".join(map(repr, ENDINGS)))
    return path


def _fields(item: Explained) -> dict[str, Any]:
    status = {"status": item.row.status, "error": item.row.error}
    return status if item.explanation is None else status | _answer(item.explanation)


def _answer(found: Explanation) -> dict[str, Any]:
    probabilities, logits = found.probabilities.tolist(), found.logits.tolist()
    result = found.attribution
    return (
        {"prediction": found.labels[found.predicted]}
        | {f"probability: {label}": value for label, value in zip(found.labels, probabilities, strict=True)}
        | {f"logit: {label}": value for label, value in zip(found.labels, logits, strict=True)}
        | {
            "target": found.labels[found.target],
            "baseline": found.baseline,
            "score": float(result.score),
            "baseline score": float(result.baseline_score),
            "residual": float(result.residual),
            "atoms": list(found.symbols),
            "shares": found.shares,
        }
    )


def _about(model: MoleculeModel) -> dict[str, Any]:
    return {
        "model": model.name,
        "degree": model.certificate.degree,
        "points": model.certificate.points,
        "sha256": model.sha256,
        "labels": list(model.labels),
    }


def _all(item: Explained, model: MoleculeModel) -> Iterable[tuple[str, Any]]:
    """The fields of one row of a CSV file: those of its explanation, then those of the model."""
    about = _about(model)
    return (_fields(item) | {key: about[key] for key in ("model", "degree", "points")}).items()


def _names(model: MoleculeModel) -> list[str]:
    each = [f"{kind}: {label}" for kind in ("probability", "logit") for label in model.labels]
    first, last = (
        ["status", "error", "prediction"],
        ["target", "baseline", "score", "baseline score", "residual"],
    )
    return [*first, *each, *last, "atoms", "shares", "model", "degree", "points"]


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value
