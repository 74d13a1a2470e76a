"""`config.json`, the half of a saved model that people read, and that nothing trusts.

    {"format": "apexgnn-model", "version": 1, "class": "PolyGIN", "config": {the constructor's arguments},
     "weights": {"file": "model-<12 hex>.safetensors", "sha256": "<64 hex>"}, "metadata": {…},
     "checksum": SHA-256 of all the other fields as JSON with sorted keys and no spaces}

Every field is checked and named when wrong; unknown fields and later versions are refused; the weights' file
is a plain name of one fixed form, so that it cannot point out of the folder. The checksum is there because a
flipped bit in ε or in a class's name would leave a valid file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apexgnn.errors import CheckpointError

FORMAT = "apexgnn-model"
VERSION = 1
CLASSES = ("PolyGIN", "GIN")
FIELDS = ("format", "version", "class", "config", "weights", "metadata", "checksum")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a saved model says about itself.

    Attributes:
        model_class: "PolyGIN" or "GIN".
        config: the arguments of its constructor.
        weights: the file that holds the weights, in the same folder.
        sha256: of that file.
        metadata: whatever was given to `save`.

    >>> Checkpoint("GIN", {"in_channels": 3}, "model-0123456789ab.safetensors", "0" * 64, {}).model_class
    'GIN'
    """

    model_class: str
    config: dict[str, Any]
    weights: str
    sha256: str
    metadata: dict[str, Any]

    def to_json(self) -> str:
        """The content of `config.json`."""
        fields = {
            "format": FORMAT,
            "version": VERSION,
            "class": self.model_class,
            "config": self.config,
            "weights": {"file": self.weights, "sha256": self.sha256},
            "metadata": self.metadata,
        }
        fields["checksum"] = checksum(fields)
        return json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def checksum(fields: Mapping[str, Any]) -> str:
    """SHA-256 of all fields but the checksum itself."""
    others = {key: value for key, value in fields.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(others, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_manifest(path: Path) -> Checkpoint:
    """Read and check `config.json`."""
    try:
        fields = json.loads(path.read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise CheckpointError(
            str(path), got=str(error.strerror), expected="a readable config.json"
        ) from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            str(path), got=f"not JSON ({error})", expected="what apexgnn.nn.save wrote"
        ) from error
    return _parse(fields)


def check_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as a plain dict, which JSON must give back as it was (an int key or a tuple would change)."""
    plain = dict(metadata)
    try:
        same = json.loads(json.dumps(plain, allow_nan=False)) == plain
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError("metadata", got=str(error), expected="what JSON can hold") from error
    if not same:
        raise CheckpointError(
            "metadata",
            got="values that JSON changes, such as tuples or keys that are not strings",
            expected="string keys, and values made of dicts, lists, strings, numbers, true, false and null",
        )
    return plain


def check_names(where: str, found: Iterable[str], *, required: Iterable[str], known: Iterable[str]) -> None:
    """Complain of names that are missing or not known."""
    found = set(found)
    unknown, missing = sorted(found - set(known)), sorted(set(required) - found)
    if unknown:
        raise CheckpointError(where, got=f"unknown {', '.join(unknown[:5])}", expected="only known names")
    if missing:
        raise CheckpointError(where, got=f"no {', '.join(missing[:5])}", expected="every name that is needed")


def require(condition: object, where: str, *, got: Any, expected: str) -> None:
    """Complain of a field that does not hold what it must."""
    if not condition:
        shown = repr(got)
        raise CheckpointError(where, got=shown if len(shown) <= 80 else shown[:79] + "…", expected=expected)


def _parse(fields: Any) -> Checkpoint:
    require(isinstance(fields, dict), "config.json", got=fields, expected="an object")
    require(fields.get("format") == FORMAT, "format", got=fields.get("format"), expected=repr(FORMAT))
    version = fields.get("version")
    require(type(version) is int and version >= 1, "version", got=version, expected="an integer from 1 on")
    if version > VERSION:
        raise CheckpointError(
            "version", got=str(version), expected=f"at most {VERSION}", fix="install a later apexgnn"
        )
    check_names("config.json", fields, required=FIELDS, known=FIELDS)
    for key in ("config", "weights", "metadata"):
        require(isinstance(fields[key], dict), key, got=fields[key], expected="an object")
    name, weights = fields["class"], fields["weights"]
    require(name in CLASSES, "class", got=name, expected="one of " + ", ".join(map(repr, CLASSES)))
    check_names("weights", weights, required=("file", "sha256"), known=("file", "sha256"))
    for key, pattern, expected in (
        ("file", r"model-[0-9a-f]{12}\.safetensors", "model-<12 hex>.safetensors in the same folder"),
        ("sha256", r"[0-9a-f]{64}", "64 hex digits"),
    ):
        value = weights[key]
        matches = isinstance(value, str) and re.fullmatch(pattern, value)
        require(matches, f"weights.{key}", got=value, expected=expected)
    require(
        fields["checksum"] == checksum(fields),
        "checksum",
        got=fields["checksum"],
        expected=f"{checksum(fields)}, which config.json now has: it was changed after it was saved",
    )
    return Checkpoint(name, fields["config"], weights["file"], weights["sha256"], fields["metadata"])


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")
