"""Many small graphs as a few flat arrays, in memory or on disk.

Graph g owns the nodes node_ptr[g] … node_ptr[g + 1] and the edges edge_ptr[g] … edge_ptr[g + 1]; its edges
count its own nodes from 0. So one graph is a slice, a batch is a few gathers, and features too large for
memory stay in a memory-mapped file until they are asked for.

On disk, a folder: `x.npy` (features, memory-mapped), `graphs.safetensors` (all other arrays),
`strings.json` (SMILES, tokens …) and, written last, `meta.json`. Nothing in it can execute.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import Tensor
from torch_geometric.data import Batch, Data

from apexgnn.errors import DataError
from apexgnn.files import write_atomically

Arrays = dict[str, np.ndarray]
FEATURES, ARRAYS, STRINGS, META = "x.npy", "graphs.safetensors", "strings.json", "meta.json"
FORMAT = 1
_LEVELS = ("node", "edge", "graph")


@dataclass(frozen=True, slots=True, eq=False)
class PackedGraphs(Sequence[Data]):
    """G graphs in flat arrays; `graphs[i]` is a PyG `Data`, `graphs.batch(indices)` a PyG `Batch`.

    Attributes:
        x: [N, F] node features, handed out as float32.
        edge_index: [2, E], numbered within each graph.
        node_ptr, edge_ptr: [G + 1], where each graph's nodes and edges begin.
        node, edge, graph: further arrays with a row per node, edge or graph (`y` is in `node` or `graph`).
        strings: per name one JSON value per graph, e.g. its SMILES or its list of tokens.

    >>> path = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([1]))
    >>> point = Data(x=torch.ones(1, 2), edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([0]))
    >>> graphs = PackedGraphs.pack([path, point])
    >>> graphs[0]
    Data(x=[2, 2], edge_index=[2, 2], y=[1])
    >>> graphs.batch([1, 0]).edge_index.tolist()
    [[1, 2], [2, 1]]
    """

    x: np.ndarray
    edge_index: np.ndarray
    node_ptr: np.ndarray
    edge_ptr: np.ndarray
    node: Arrays = field(default_factory=dict)
    edge: Arrays = field(default_factory=dict)
    graph: Arrays = field(default_factory=dict)
    strings: dict[str, list[Any]] = field(default_factory=dict)

    @classmethod
    def pack(cls, graphs: Sequence[Data]) -> PackedGraphs:
        """Flat arrays of a list of `Data`; every graph must carry the attributes of the first."""
        ptrs = (
            np.cumsum([0, *(g.num_nodes for g in graphs)]),
            np.cumsum([0, *(g.num_edges for g in graphs)]),
        )
        groups: dict[str, Arrays] = {level: {} for level in _LEVELS}
        strings: dict[str, list[Any]] = {}
        for key in graphs[0].keys():  # noqa: SIM118 — Data iterates over (key, value) pairs
            values = [g[key] for g in graphs]
            if key in ("x", "edge_index"):
                continue
            if not isinstance(values[0], Tensor):
                strings[key] = values
                continue
            rows = sum(len(v) for v in values)
            fits = {"graph": len(graphs), "node": int(ptrs[0][-1]), "edge": int(ptrs[1][-1])}
            level = next(name for name, size in fits.items() if rows == size)
            groups[level][key] = torch.cat(values).numpy()
        x = torch.cat([g.x for g in graphs]).numpy()
        edge_index = torch.cat([g.edge_index for g in graphs], dim=1).numpy()
        return cls(x, edge_index, ptrs[0], ptrs[1], **groups, strings=strings)

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    def __iter__(self) -> Iterator[Data]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int) -> Data:  # type: ignore[override]
        i = range(len(self))[index]
        nodes, edges = slice(*self.node_ptr[i : i + 2]), slice(*self.edge_ptr[i : i + 2])
        data = Data(x=_features(self.x[nodes]), edge_index=_tensor(self.edge_index[:, edges]).long())
        for arrays, rows in ((self.node, nodes), (self.edge, edges), (self.graph, slice(i, i + 1))):
            for key, array in arrays.items():
                data[key] = _tensor(array[rows])
        for key, values in self.strings.items():
            data[key] = values[i]
        return data

    def batch(self, indices: Sequence[int] | np.ndarray | Tensor) -> Batch:
        """The graphs at `indices` as one disjoint union, without making each of them first."""
        chosen = np.asarray(indices, dtype=np.int64)
        nodes, node_ptr = _ranges(self.node_ptr, chosen)
        edges, edge_ptr = _ranges(self.edge_ptr, chosen)
        sizes, counts = np.diff(node_ptr), np.diff(edge_ptr)
        batch = Batch(x=_features(self.x[nodes]))
        batch.edge_index = _tensor(self.edge_index[:, edges] + np.repeat(node_ptr[:-1], counts)).long()
        for arrays, rows in ((self.node, nodes), (self.edge, edges), (self.graph, chosen)):
            for key, array in arrays.items():
                batch[key] = _tensor(array[rows])
        for key, values in self.strings.items():
            batch[key] = [values[i] for i in chosen]
        batch.batch = torch.from_numpy(np.repeat(np.arange(len(chosen)), sizes))
        batch.ptr = torch.from_numpy(node_ptr)
        batch._num_graphs = len(chosen)
        self._make_separable(batch, torch.from_numpy(edge_ptr))
        return batch

    def _make_separable(self, batch: Batch, edge_ptr: Tensor) -> None:
        """Tell PyG where each graph lies, so that `batch[i]` and `batch.to_data_list()` work."""
        count = batch._num_graphs
        zeros, one_each = torch.zeros(count, dtype=torch.long), torch.arange(count + 1)
        slices = {"x": batch.ptr, "edge_index": edge_ptr}
        slices |= dict.fromkeys(self.node, batch.ptr) | dict.fromkeys(self.edge, edge_ptr)
        slices |= dict.fromkeys((*self.graph, *self.strings), one_each)
        batch._slice_dict = slices
        batch._inc_dict = dict.fromkeys(slices, zeros) | {"edge_index": batch.ptr[:-1]}

    def column(self, key: str) -> Tensor:
        """All values of a per-graph, per-node or per-edge array, e.g. the labels `y`."""
        return _tensor(next(level[key] for level in (self.graph, self.node, self.edge) if key in level))

    def arrays(self) -> Arrays:
        """Every array but the features, under the name it has on disk."""
        flat = {"edge_index": self.edge_index, "node_ptr": self.node_ptr, "edge_ptr": self.edge_ptr}
        for level in _LEVELS:
            flat |= {f"{level}.{key}": array for key, array in getattr(self, level).items()}
        return {key: np.ascontiguousarray(array) for key, array in flat.items()}


def save_arrays(graphs: PackedGraphs, folder: Path) -> None:
    """Write all but the features and `meta.json`."""
    partial = folder / f"{ARRAYS}.partial"
    save_file(graphs.arrays(), partial)
    partial.replace(folder / ARRAYS)
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
    except FileNotFoundError:
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
    groups: dict[str, Arrays] = {level: {} for level in _LEVELS}
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


def _features(rows: np.ndarray) -> Tensor:
    return torch.from_numpy(np.asarray(rows, dtype=np.float32))


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(array))


def _ranges(ptr: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the chosen graphs, and where each begins in the result."""
    sizes = ptr[chosen + 1] - ptr[chosen]
    begins = np.concatenate(([0], np.cumsum(sizes)))
    return np.arange(begins[-1]) + np.repeat(ptr[chosen] - begins[:-1], sizes), begins
