"""Seconds per epoch: our loop against the plain PyG loop, on graphs of Mutagenicity's size and shape.

The plain loop is what PyG's examples show: `DataLoader`, `GINConv` modules, `global_mean_pool`, Adam, batches of 32.
Ours trains the same GIN from the same weights on the same batches in the same order, so the loss curves agree to
rounding: 50 steps in float64 show it (in float32 Adam, which divides by the gradient's size, blows rounding up; that
drift is given too). PolyGIN is timed beside it. Epochs of the three alternate within one process.

    python benchmarks/training.py [--data FOLDER] [--epochs 3] [--threads 2]

Without Mutagenicity's files the graphs are made: trees with a few rings, 30 nodes on average, 14 atom types with
its frequencies and valences, so that hydrogens repeat as they do in molecules.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_mean_pool

from apexgnn.data import PackedGraphs, load
from apexgnn.nn import GIN, PolyGIN
from apexgnn.training import Quotient
from apexgnn.training.forward import logits
from apexgnn.training.run import machine

BATCH, RATE, DECAY = 32, 1e-4, 5e-6
VALENCE = (4, 2, 1, 1, 3)  # C, O, Cl, H, N, as Mutagenicity numbers them
HEAVY = (0.76, 0.13, 0.02, 0.0, 0.09)  # their shares among the atoms that are not hydrogen


class PygGIN(nn.Module):
    """The reference GIN as a user of PyG writes it."""

    def __init__(self, features: int, classes: int, width: int = 300) -> None:
        super().__init__()
        sizes = [(features, width), (width, width), (width, width)]
        self.convs = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b), nn.ReLU())) for a, b in sizes
        )
        self.head = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.0), nn.Linear(width, classes)
        )

    def forward(self, data: Data) -> torch.Tensor:
        x = data.x
        for conv in self.convs:
            x = conv(x, data.edge_index)
        return self.head(global_mean_pool(x, data.batch))


def molecules(count: int, seed: int = 0) -> list[Data]:
    """Random trees of heavy atoms with rings closed, then hydrogens up to the valence."""
    rng = np.random.default_rng(seed)
    graphs = []
    for _ in range(count):
        kinds = rng.choice(5, size=int(rng.integers(6, 21)), p=HEAVY)
        kinds[0] = 0
        free = np.array(VALENCE)[kinds]
        bonds = []
        for atom in range(1, len(kinds)):
            open_ends = np.flatnonzero(free[:atom] > 0)
            if len(open_ends) == 0:
                kinds, free = kinds[:atom], free[:atom]
                break
            other = int(rng.choice(open_ends[-4:]))
            bonds.append((atom, other))
            free[[atom, other]] -= 1
        for atom in range(5, len(kinds), 6):
            if free[atom] > 0 and free[atom - 5] > 0:
                bonds.append((atom, atom - 5))
                free[[atom, atom - 5]] -= 1
        hydrogens = np.repeat(np.arange(len(kinds)), np.minimum(free.clip(0), 2))
        bonds += [(len(kinds) + i, int(atom)) for i, atom in enumerate(hydrogens)]
        kinds = np.concatenate([kinds, np.full(len(hydrogens), 3)])
        ends = np.array(bonds, dtype=np.int64).reshape(-1, 2).T
        x = torch.eye(14)[torch.from_numpy(kinds)]
        edges = torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1))
        graphs.append(Data(x=x, edge_index=edges, y=torch.tensor([int(rng.integers(2))])))
    return graphs


def pyg_epoch(
    model: PygGIN, optimiser: torch.optim.Optimizer, graphs: list[Data], order: np.ndarray
) -> list[float]:
    """One epoch of the plain loop, collation included."""
    losses = []
    for batch in DataLoader([graphs[i] for i in order], batch_size=BATCH):
        loss = cross_entropy(model(batch), batch.y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def our_epoch(
    model: PolyGIN | GIN, optimiser: torch.optim.Optimizer, quotient: Quotient, order: np.ndarray
) -> list[float]:
    """One epoch of ours, batches cut from the quotient included."""
    losses = []
    for k in range(0, len(order), BATCH):
        batch = quotient.batch(order[k : k + BATCH])
        loss = cross_entropy(logits(model, batch), batch.labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def drift(graphs: list[Data], quotient: Quotient, order: np.ndarray) -> float:
    """The largest relative difference of the two GINs' losses over these graphs, one epoch in float64."""
    torch.manual_seed(0)
    gin, pyg = GIN(14, 2, dropout=0.0).double(), PygGIN(14, 2).double()
    pyg.load_state_dict(renamed(gin), strict=False)
    double = [Data(x=g.x.double(), edge_index=g.edge_index, y=g.y) for g in graphs]
    exact = replace(quotient, features=quotient.features.double())
    curves = [
        np.array(run(model, torch.optim.Adam(model.parameters(), RATE, weight_decay=DECAY), data, order))
        for run, model, data in ((pyg_epoch, pyg, double), (our_epoch, gin, exact))
    ]
    return float(np.abs(curves[0] / curves[1] - 1).max())


def renamed(gin: GIN) -> dict[str, torch.Tensor]:
    """The weights under the names that PyG's modules give them."""
    return {re.sub(r"^(convs\.\d+)", r"\1.nn", k): v for k, v in gin.state_dict().items()}


def measure(graphs: list[Data], epochs: int) -> dict[str, object]:
    """Alternate epochs of the three; seconds per epoch, and how far the two GINs' losses drift apart."""
    begin = time.perf_counter()
    quotient = Quotient.of(PackedGraphs.pack([Data(x=g.x, edge_index=g.edge_index, y=g.y) for g in graphs]))
    refinement = time.perf_counter() - begin
    torch.manual_seed(0)
    gin, polygin, pyg = GIN(14, 2, dropout=0.0), PolyGIN(14, 2, dropout=0.0), PygGIN(14, 2)
    pyg.load_state_dict(renamed(gin), strict=False)
    steps = {
        "PyG loop, GIN": (
            pyg_epoch,
            pyg,
            torch.optim.Adam(pyg.parameters(), RATE, weight_decay=DECAY),
            graphs,
        ),
        "ours, GIN": (
            our_epoch,
            gin,
            torch.optim.Adam(gin.parameters(), RATE, weight_decay=DECAY, fused=True),
            quotient,
        ),
        "ours, PolyGIN": (
            our_epoch,
            polygin,
            torch.optim.Adam(polygin.parameters(), RATE, weight_decay=DECAY, fused=True),
            quotient,
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    curves: dict[str, list[float]] = {name: [] for name in steps}
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(graphs))
        for name, (run, model, optimiser, data) in steps.items():
            begin = time.perf_counter()
            curves[name] += run(model, optimiser, data, order)
            seconds[name].append(time.perf_counter() - begin)
    ours, theirs = (np.array(curves[name]) for name in ("ours, GIN", "PyG loop, GIN"))
    return {
        "graphs": len(graphs),
        "mean_nodes": float(np.mean([g.num_nodes for g in graphs])),
        "batch": BATCH,
        "epochs": epochs,
        "refinement_seconds": refinement,
        "seconds_per_epoch": {name: {"median": median(v), "minimum": min(v)} for name, v in seconds.items()},
        "ratio_gin": median(seconds["ours, GIN"]) / median(seconds["PyG loop, GIN"]),
        "ratio_polygin": median(seconds["ours, PolyGIN"]) / median(seconds["PyG loop, GIN"]),
        "loss_drift_float64": drift(
            graphs, quotient, np.random.default_rng(0).permutation(len(graphs))[: 50 * BATCH]
        ),
        "loss_drift_float32": float(np.abs(ours / theirs - 1).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with Mutagenicity's raw files")
    parser.add_argument("--graphs", type=int, default=3469, help="how many graphs are trained on")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/training.json"))
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    if chosen.data:
        data = load("mutagenicity", root=chosen.data)
        graphs = [data[int(i)] for i in data.split().train[: chosen.graphs]]
        graphs = [Data(x=g.x, edge_index=g.edge_index, y=g.y) for g in graphs]
    else:
        graphs = molecules(chosen.graphs)
    found = measure(graphs, chosen.epochs) | {
        "source": "Mutagenicity" if chosen.data else "made",
        "threads": chosen.threads,
        "machine": machine(),
        "torch": torch.__version__,
    }
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(found, indent=1) + "\n")
    print(
        f"{found['graphs']} graphs of {found['mean_nodes']:.1f} nodes, batches of {BATCH}, {chosen.threads} threads"
    )
    print("| loop | seconds per epoch, median | minimum |\n|---|---|---|")
    for name, row in found["seconds_per_epoch"].items():
        print(f"| {name} | {row['median']:.2f} | {row['minimum']:.2f} |")
    print(f"GIN: {found['ratio_gin']:.2f} × the PyG loop's time, PolyGIN: {found['ratio_polygin']:.2f} ×")
    print(f"losses of the two GINs differ by {found['loss_drift_float64']:.0e} at most, 50 steps in float64")


if __name__ == "__main__":
    main()
