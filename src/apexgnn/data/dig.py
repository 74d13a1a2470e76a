"""Graph-SST2 as DIG publishes it, without ever running its pickle.

Files `<prefix>_node_features.pkl` (one numpy array), `_edge_index.txt` (two node numbers a line, from 0
through all graphs, one direction only), `_node_indicator.txt` (each node's graph, from 1), `_graph_labels.txt`,
`_split_indices.txt` (0, 1, 2 = train, dev, test) and `_sentence_tokens.json` (graph → its words).

A pickle is a program. Here its interpreter knows only the handful of names that a numpy array is written
with, and each of them stands for an inert placeholder that keeps what it is given: no numpy code runs on the
file's say-so. The array is then made from the raw bytes, if they are 2-D numbers and of the stated size.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from apexgnn.data.packed import Arrays, PackedGraphs
from apexgnn.errors import DataError

_NUMBERS = {"f2", "f4", "f8"}


class _Dtype:
    """Stands for numpy.dtype: its name, and the byte order that is set later."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.name, self.order = name, "|"

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]

    def real(self) -> np.dtype:
        """The dtype, if it is one of plain floating-point numbers."""
        if self.name not in _NUMBERS or self.order not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError(f"an array of dtype {self.name!r}")
        plain: np.dtype = np.dtype(self.order + self.name)
        return plain


class _Array:
    """Stands for numpy.ndarray: shape, dtype, memory order and raw bytes."""

    parts: tuple[Any, Any, Any, Any] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, content = state
        self.parts = (shape, dtype, "F" if fortran else "C", content)

    def real(self) -> np.ndarray:
        """The array [rows, columns]."""
        if self.parts is None or not isinstance(self.parts[1], _Dtype):
            raise pickle.UnpicklingError("an array without content")
        shape, dtype, order, content = self.parts
        if not (isinstance(shape, tuple) and len(shape) == 2 and all(isinstance(n, int) for n in shape)):
            raise pickle.UnpicklingError(f"an array of shape {shape!r}")
        if not isinstance(content, (bytes, bytearray)):
            raise pickle.UnpicklingError(f"content of type {type(content).__name__}")
        return np.frombuffer(content, dtype.real()).reshape(shape, order=order)


def _reconstruct(kind: Any, *_: Any) -> _Array:
    if kind is not _Array:
        raise pickle.UnpicklingError("something else than a plain array")
    return _Array()


def _from_buffer(content: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    array = _Array()
    array.parts = (shape, dtype, order if order == "F" else "C", content)
    return array


def _encode(text: Any, codec: Any) -> bytes:
    if codec != "latin1" or not isinstance(text, str):
        raise pickle.UnpicklingError(f"the codec {codec!r}")
    return text.encode("latin1")


_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
}


class _ArrayUnpickler(pickle.Unpickler):
    """An interpreter that knows no names but those of a plain array."""

    def find_class(self, module: str, name: str) -> Any:
        """The placeholder of a known name."""
        if (module, name) not in _KNOWN:
            raise pickle.UnpicklingError(f"the name {module}.{name}")
        return _KNOWN[module, name]


def read_array(file: BinaryIO, where: str) -> np.ndarray:
    """The one 2-D array of floating-point numbers in a pickle; anything else is refused.

    >>> import io
    >>> read_array(io.BytesIO(pickle.dumps(np.eye(2))), "eye.pkl").tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> read_array(io.BytesIO(pickle.dumps(print)), "print.pkl")
    Traceback (most recent call last):
        ...
    apexgnn.errors.DataError: print.pkl: got a pickle with the name builtins.print; expected one 2-D numpy array \
of numbers and nothing else. To fix: do not open that file with pickle.
    """
    try:
        array = _ArrayUnpickler(file).load()
        if not isinstance(array, _Array):
            raise pickle.UnpicklingError(f"a {type(array).__name__}")
        return array.real()
    except Exception as error:
        raise DataError(
            where,
            got=f"a pickle with {error}",
            expected="one 2-D numpy array of numbers and nothing else",
            fix="do not open that file with pickle",
        ) from error


def files(folder: Path, prefix: str) -> dict[str, Path]:
    """The six files of a data set in DIG's layout, by their part of the name."""
    text = ("edge_index", "node_indicator", "graph_labels", "split_indices")
    return {
        "node_features": folder / f"{prefix}_node_features.pkl",
        "sentence_tokens": folder / f"{prefix}_sentence_tokens.json",
        **{part: folder / f"{prefix}_{part}.txt" for part in text},
    }


def read(folder: Path, prefix: str) -> PackedGraphs:
    """The graphs of DIG's files, edges in both directions."""
    paths = files(folder, prefix)
    with paths["node_features"].open("rb") as file:
        x = read_array(file, str(paths["node_features"]))
    try:
        ends, of_node, y, split = (
            np.loadtxt(paths[part], dtype=np.int64, ndmin=1)
            for part in ("edge_index", "node_indicator", "graph_labels", "split_indices")
        )
        tokens = list(json.loads(paths["sentence_tokens"].read_text(encoding="utf-8")).values())
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(str(folder), got=str(error), expected="DIG's text files") from error
    ends, of_node = ends.reshape(-1, 2).T, of_node - 1
    _check(folder, ends, of_node, nodes=len(x), counts=[len(y), len(split), len(tokens)])
    both = np.concatenate([ends, ends[::-1]], axis=1)
    arrays: Arrays = {"y": y, "split": split.astype(np.int8)}
    return PackedGraphs.from_union(x, both, of_node, graph=arrays, strings={"tokens": tokens})


def _check(folder: Path, ends: np.ndarray, of_node: np.ndarray, *, nodes: int, counts: list[int]) -> None:
    """Refuse files that do not belong together."""
    graphs = int(of_node[-1]) + 1
    problem = ""
    if len(of_node) != nodes:
        problem = f"{len(of_node)} node indicators for {nodes} nodes"
    elif of_node[0] != 0 or not np.isin(np.diff(of_node), (0, 1)).all():
        problem = "node indicators that do not count up from 1"
    elif any(count != graphs for count in counts):
        problem = f"{graphs} graphs, but {'/'.join(map(str, counts))} labels/splits/sentences"
    elif ends.min(initial=0) < 0 or ends.max(initial=0) >= nodes:
        problem = "a node number out of range"
    elif (of_node[ends[0]] != of_node[ends[1]]).any():
        problem = "an edge between two graphs"
    if problem:
        raise DataError(str(folder), got=problem, expected="the files of one data set")
