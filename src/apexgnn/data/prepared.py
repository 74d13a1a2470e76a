"""A prepared data set on disk: a folder that holds `PackedGraphs` and says how they were made.

`x.npy` (features, memory-mapped), `graphs.safetensors` (all other arrays), `strings.json` (SMILES, tokens …)
and, written last, `meta.json`: a folder without it does not count. Nothing in these files can execute.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as save_bytes

from apexgnn.data.packed import LEVELS, Arrays, PackedGraphs
from apexgnn.errors import DataError
from apexgnn.files import write_atomically

FEATURES, ARRAYS, STRINGS, META = "x.npy", "graphs.safetensors", "strings.json", "meta.json"
FORMAT = 1


def save_arrays(graphs: PackedGraphs, folder: Path) -> None:
    """Write all but the features and `meta.json`."""
    write_atomically(folder / ARRAYS, save_bytes(graphs.arrays()))
    write_atomically(folder / STRINGS, json.dumps(graphs.strings, ensure_ascii=False))


def save(graphs: PackedGraphs, folder: Path, meta: dict[str, Any]) -> None:
    """Write a whole prepared folder; `meta.json` comes last and makes it valid."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / FEATURES, graphs.x, allow_pickle=False)
    save_arrays(graphs, folder)
    write_meta(folder, meta)


def write_meta(folder: Path, meta: dict[str, Any]) -> None:
    """Write `meta.json` with the format version: from now on the folder counts as prepared."""
    write_atomically(folder / META, json.dumps({"format": FORMAT, **meta}, indent=1, ensure_ascii=False))


def read_meta(folder: Path) -> dict[str, Any] | None:
    """The metadata of a prepared folder, or None where there is none."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise DataError(str(folder / META), got=str(error), expected="JSON metadata") from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        got = f"format {meta.get('format')!r}" if isinstance(meta, dict) else type(meta).__name__
        raise DataError(
            str(folder / META),
            got=got,
            expected=f"format {FORMAT}",
            fix="delete the folder and prepare it anew",
        )
    return meta


def open_folder(folder: Path) -> PackedGraphs:
    """The graphs of a prepared folder, the features memory-mapped."""
    try:
        x = np.load(folder / FEATURES, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _unreadable(folder, error) from error
    graphs = open_arrays(folder, x)
    if len(x) != int(graphs.node_ptr[-1]):
        raise _unreadable(folder, ValueError(f"{len(x)} feature rows for {int(graphs.node_ptr[-1])} nodes"))
    return graphs


def open_arrays(folder: Path, x: np.ndarray) -> PackedGraphs:
    """The graphs of a folder, with the features `x`."""
    try:
        flat = load_file(folder / ARRAYS)
        strings = json.loads((folder / STRINGS).read_text(encoding="utf-8"))
        edge_index, node_ptr, edge_ptr = (flat.pop(key) for key in ("edge_index", "node_ptr", "edge_ptr"))
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise _unreadable(folder, error) from error
    groups: dict[str, Arrays] = {level: {} for level in LEVELS}
    for name, array in flat.items():
        level, key = name.split(".", 1)
        groups[level][key] = array
    return PackedGraphs(x, edge_index, node_ptr, edge_ptr, **groups, strings=strings)


def _unreadable(folder: Path, error: Exception) -> DataError:
    return DataError(
        str(folder),
        got=f"{type(error).__name__}: {error}",
        expected="a prepared data set",
        fix="delete the folder and prepare it anew",
    )
