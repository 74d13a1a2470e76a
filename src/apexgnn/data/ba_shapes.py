"""BA-Shapes: find the houses on a Barabási–Albert graph. (Ying et al. 2019, GNNExplainer.)

300 base nodes, each new one with 5 edges; 80 houses of five nodes, each attached by one edge, at every third
base node; then 20 further random edges. Role 0 = base (300), 1 = middle of a house (160), 2 = bottom (160),
3 = top (80). Ten constant features. True explanations: the six edges of each house.

The number of random edges is that of the published graph: 1 % of its other 2,035 edges, as the authors' code
has it. Their text says 0.1 N, which would be 70; `generate(extra_edges=70)` gives that.

`ba-shapes` is generated and needs no data; `ba-shapes-published` is the authors' graph with its masks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

from apexgnn.data.dataset import Spec
from apexgnn.data.packed import PackedGraphs
from apexgnn.data.sources import RawFile, locate

BASE, ATTACH, HOUSES, EXTRA, FEATURES = 300, 5, 80, 20, 10
HOUSE = ((0, 1), (1, 2), (2, 3), (3, 0), (4, 0), (4, 1))
ROLES = (1, 1, 2, 2, 3)


def generate(seed: int = 0, *, extra_edges: int = EXTRA) -> Data:
    """A BA-Shapes graph; `motif` marks house nodes, `edge_gt` house edges.

    >>> generate(seed=3)
    Data(x=[700, 10], edge_index=[2, 4110], y=[700], motif=[700], edge_gt=[4110])
    """
    graph = nx.barabasi_albert_graph(BASE, ATTACH, seed=seed)
    nx.set_edge_attributes(graph, False, "house")
    roles = [0] * BASE
    for house in range(HOUSES):
        first = len(roles)
        graph.add_edges_from(((first + a, first + b) for a, b in HOUSE), house=True)
        graph.add_edge(first, house * (BASE // HOUSES), house=False)
        roles.extend(ROLES)
    rng = np.random.default_rng(seed)
    total = graph.number_of_edges() + extra_edges
    while graph.number_of_edges() < total:
        a, b = (int(v) for v in rng.integers(len(roles), size=2))
        if a != b and not graph.has_edge(a, b):
            graph.add_edge(a, b, house=False)
    both = sorted((*pair, house) for u, v, house in graph.edges(data="house") for pair in ((u, v), (v, u)))
    ends = torch.tensor(both)
    return _data(ends[:, :2].T.contiguous(), torch.tensor(roles), ends[:, 2].bool())


def _data(edge_index: torch.Tensor, y: torch.Tensor, edge_gt: torch.Tensor) -> Data:
    x = torch.ones(len(y), FEATURES)
    return Data(x=x, edge_index=edge_index, y=y, motif=y > 0, edge_gt=edge_gt)


def _packed(data: Data) -> PackedGraphs:
    return PackedGraphs.pack([data], node=("y", "motif", "split"), edge=("edge_gt",))


def _read_generated(spec: Spec, root: Path | None) -> tuple[PackedGraphs, dict[str, Any]]:
    return _packed(generate()), {"seed": 0, "networkx": nx.__version__}


def _read_published(spec: Spec, root: Path | None) -> tuple[PackedGraphs, dict[str, Any]]:
    path = locate(spec.files[0], root)
    assert path is not None
    with np.load(path, allow_pickle=False) as raw:
        arrays = {key: torch.from_numpy(raw[key]) for key in raw.files}
    edge_index = arrays["edge_index"].long()
    truth = {tuple(pair) for pair in arrays["edge_gt"].T.tolist()}
    marked = [(a, b) in truth or (b, a) in truth for a, b in edge_index.T.tolist()]
    data = _data(edge_index, arrays["y"], torch.tensor(marked))
    data.split = arrays["val_mask"].to(torch.int8) + 2 * arrays["test_mask"].to(torch.int8)
    return _packed(data), {}


_LABELS = ("base", "middle of a house", "bottom of a house", "top of a house")

SPEC = Spec(
    name="ba-shapes",
    task="node",
    features=FEATURES,
    classes=4,
    labels=_LABELS,
    source="generated: Barabási–Albert graph with houses, seed 0",
    licence="MIT, as apexgnn",
    read=_read_generated,
    graphs=1,
)

PUBLISHED = Spec(
    name="ba-shapes-published",
    task="node",
    features=FEATURES,
    classes=4,
    labels=_LABELS,
    source="github.com/flyingdoog/PGExplainer, dataset/datasets.zip (syn1), as plain arrays",
    licence="none stated",
    read=_read_published,
    graphs=1,
    splits=("published", "random"),
    files=(
        RawFile("ba_shapes/raw/syn1.npz", "b5338788d41956c0b1242bfa11d77a294e6ef9d78acc1bfd4b8d166c76623291"),
    ),
)
