"""Many small graphs as a few flat arrays, in memory or on disk.

Graph g owns the nodes node_ptr[g] … node_ptr[g + 1] and the edges edge_ptr[g] … edge_ptr[g + 1]; its edges
count its own nodes from 0. So one graph is a slice, a batch is a few gathers, and features too large for
memory stay in a memory-mapped file until they are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

Arrays = dict[str, np.ndarray]
LEVELS = ("node", "edge", "graph")


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
    def pack(
        cls, graphs: Sequence[Data], *, node: Collection[str] = (), edge: Collection[str] = ()
    ) -> PackedGraphs:
        """Flat arrays of a list of `Data`, which must all carry the attributes of the first.

        Args:
            graphs: at least one.
            node, edge: the tensors that have a row per node or per edge; all others have one per graph.
        """
        levels: dict[str, Arrays] = {level: {} for level in LEVELS}
        strings: dict[str, list[Any]] = {}
        for key in sorted(set(graphs[0].keys()) - {"x", "edge_index"}):
            values = [g[key] for g in graphs]
            if isinstance(values[0], Tensor):
                level = "node" if key in node else "edge" if key in edge else "graph"
                levels[level][key] = torch.cat(values).numpy()
            else:
                strings[key] = values
        return cls(
            torch.cat([g.x for g in graphs]).numpy(),
            torch.cat([g.edge_index for g in graphs], dim=1).numpy(),
            np.cumsum([0, *(g.num_nodes for g in graphs)]),
            np.cumsum([0, *(g.num_edges for g in graphs)]),
            **levels,
            strings=strings,
        )

    @classmethod
    def from_union(
        cls,
        x: np.ndarray,
        ends: np.ndarray,
        of_node: np.ndarray,
        *,
        node: Arrays | None = None,
        edge: Arrays | None = None,
        graph: Arrays | None = None,
        strings: dict[str, list[Any]] | None = None,
    ) -> PackedGraphs:
        """The graphs of one disjoint union, as the TUDataset format has it; edges get sorted.

        Args:
            x: [N, F].
            ends: [2, E], numbered through all graphs.
            of_node: [N], each node's graph, ascending from 0 without a gap.
            node, edge, graph, strings: further values, a row per node, edge or graph.
        """
        node_ptr = np.concatenate(([0], np.cumsum(np.bincount(of_node))))
        order = np.lexsort((ends[1], ends[0]))
        ends = ends[:, order]
        of_edge = of_node[ends[0]]
        counts = np.bincount(of_edge, minlength=len(node_ptr) - 1)
        return cls(
            x,
            ends - node_ptr[of_edge],
            node_ptr,
            np.concatenate(([0], np.cumsum(counts))),
            node=node or {},
            edge={key: array[order] for key, array in (edge or {}).items()},
            graph=graph or {},
            strings=strings or {},
        )

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
        for level in LEVELS:
            flat |= {f"{level}.{key}": array for key, array in getattr(self, level).items()}
        return {key: np.ascontiguousarray(array) for key, array in flat.items()}


def _features(rows: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(rows, dtype=np.float32))


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(array))


def _ranges(ptr: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the chosen graphs, and where each begins in the result."""
    sizes = ptr[chosen + 1] - ptr[chosen]
    begins = np.concatenate(([0], np.cumsum(sizes)))
    return np.arange(begins[-1]) + np.repeat(ptr[chosen] - begins[:-1], sizes), begins
