"""Small random graphs for the tests of training: repeated shapes, isolated nodes, a self-loop, a double edge."""

import numpy as np
import torch
from torch_geometric.data import Data

from apexgnn.data import PackedGraphs
from apexgnn.data.splits import Split


def graphs(count=60, seed=0, features=4):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        n = int(rng.integers(1, 9))
        kinds = rng.integers(features, size=n)
        m = int(rng.integers(0, 2 * n))
        ends = rng.integers(n, size=(2, m))
        edges = np.concatenate([ends, ends[::-1]], axis=1)
        label = int((kinds == 0).sum() > n / features)
        x = torch.eye(features)[kinds]
        made.append(Data(x=x, edge_index=torch.from_numpy(edges), y=torch.tensor([label])))
    return made


def packed(count=60, seed=0):
    return PackedGraphs.pack(graphs(count, seed))


def split(count=60):
    order = torch.arange(count)
    cut = count * 2 // 3
    return Split(order[:cut], order[cut : cut + count // 6], order[cut + count // 6 :], "random", 0)
