"""Cells: results kept under the content of all that they depend on.

A cell's name is the SHA-256 of its key: what is computed, with which options, by which model (the hash of its weights),
on which graphs (the hash of their numbers). A changed model or graph asks for another cell, and an old one cannot
answer. Cells are small JSON files that appear whole or not at all, so a run may be killed anywhere and goes on where
it was; work is claimed by locks that go with their process, so several processes may share one store.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from apexgnn import __version__
from apexgnn.files import write_atomically

Key = dict[str, Any]
WAIT = 5.0  # seconds between looks at work that another process has claimed


def digest(key: Key) -> str:
    """The name of a cell.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 1, "b": 3})
    True
    """
    text = json.dumps({**key, "version": __version__}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def content(graphs: Iterable[Data], index: Iterable[int] | None = None) -> str:
    """The hash of graphs: features, edges, labels, and the nodes that are asked about.

    >>> import torch
    >>> graph = Data(x=torch.zeros(2, 1), edge_index=torch.tensor([[0], [1]]))
    >>> len(content([graph])), content([graph]) == content([graph, graph])
    (64, False)
    """
    total = hashlib.sha256()
    for graph in graphs:
        for tensor in (graph.x, graph.edge_index, graph.y):
            if tensor is not None:
                array = np.ascontiguousarray(tensor.detach().cpu().numpy())
                total.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    if index is not None:
        total.update(repr(list(index)).encode())
    return total.hexdigest()


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of cells.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, key = Store(Path(folder)), {"what": "sum", "of": [1, 2]}
    ...     store.get(key), store.cell(key, lambda: 3), store.cell(key, lambda: 4)
    (None, 3, 3)
    """

    folder: Path

    def path(self, key: Key) -> Path:
        """Where the cell of this key lies."""
        return self.folder / str(key["what"]) / f"{digest(key)}.json"

    def get(self, key: Key) -> Any:
        """The value of a finished cell, or None."""
        try:
            return json.loads(self.path(key).read_text())["value"]
        except FileNotFoundError:
            return None

    def put(self, key: Key, value: Any) -> None:
        """Finish a cell."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"key": key, "value": value}) + "\n")

    def cell(self, key: Key, compute: Callable[[], Any]) -> Any:
        """The value of a cell, computed if it is not there."""
        value = self.get(key)
        if value is None:
            value = compute()
            self.put(key, value)
        return value

    @contextmanager
    def claimed(self, name: str) -> Iterator[bool]:
        """Whether this process has `name` for itself; the lock goes with the process, however it ends."""
        path = self.folder / "locks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def share(self, names: Iterable[str], work: Callable[[str], None]) -> None:
        """Do all pieces of work with whoever else is at it: those that nobody has first, then wait for the rest."""
        left = list(dict.fromkeys(names))
        while left:
            taken = []
            for name in left:
                with self.claimed(name) as mine:
                    if mine:
                        work(name)
                        taken.append(name)
            left = [name for name in left if name not in taken]
            if left and not taken:
                sleep(WAIT)


def rounded(values: Tensor, digits: int = 9) -> list[float]:
    """A tensor as JSON numbers; nine digits give every float32 back.

    >>> import torch
    >>> rounded(torch.tensor([0.1, 2.0]))
    [0.100000001, 2.0]
    """
    return [float(f"{value:.{digits}g}") for value in values.flatten().tolist()]
