"""Seconds per epoch: our training loop against the plain loop of PyTorch Geometric's examples.

The plain loop is `DataLoader`, `GINConv` modules, `global_mean_pool` and Adam in batches of 32. Ours trains the same
GIN from the same weights on the same batches in the same order, so the losses must agree to rounding: fifty steps in
float64 show it. (In float32 Adam, which divides by the gradient's size, magnifies rounding; that is told too.)
PolyGIN is timed beside it. The three take turns, epoch by epoch.

The graphs are the training part of Mutagenicity where it is at hand, and made ones of its size and shape elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_mean_pool

from apexgnn.benchmark.molecules import saturated
from apexgnn.benchmark.part import Claim, Part, Record, Say, Settings, table
from apexgnn.benchmark.timing import Times, timed
from apexgnn.data import PackedGraphs, load
from apexgnn.errors import DataError
from apexgnn.nn import GIN, PolyGIN
from apexgnn.training import Quotient
from apexgnn.training.forward import logits

BATCH, RATE, DECAY, STEPS = 32, 1e-4, 5e-6, 50
GRAPHS = 3469  # four fifths of Mutagenicity
PLAIN, OUR_GIN, OUR_POLYGIN = "PyG loop, GIN", "ours, GIN", "ours, PolyGIN"


class PlainGIN(nn.Module):
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

    def forward(self, data: Data) -> Tensor:
        """Logits [G, C]."""
        x = data.x
        for conv in self.convs:
            x = conv(x, data.edge_index)
        scores: Tensor = self.head(global_mean_pool(x, data.batch))
        return scores


def renamed(gin: GIN) -> dict[str, Tensor]:
    """The weights under the names that PyG's modules give them, and their ε."""
    named = {re.sub(r"^(convs\.\d+)", r"\1.nn", name): value for name, value in gin.state_dict().items()}
    return named | {f"convs.{k}.eps": torch.tensor([gin.eps]) for k in range(len(gin.convs))}


@dataclass(slots=True, eq=False)
class Run:
    """A model in training; each call is one epoch, over an order drawn from the epoch's number."""

    batches: Callable[[np.ndarray], Any]
    scores: Callable[[Any], Tensor]
    labels: Callable[[Any], Tensor]
    optimiser: torch.optim.Optimizer
    graphs: int
    losses: list[float] = field(default_factory=list)
    epoch: int = 0

    def __call__(self) -> None:
        """One epoch."""
        order = np.random.default_rng(self.epoch).permutation(self.graphs)
        for batch in self.batches(order):
            loss = cross_entropy(self.scores(batch), self.labels(batch))
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
            self.losses.append(loss.item())
        self.epoch += 1


def plain(graphs: list[Data], model: nn.Module) -> Run:
    """The plain loop, collation included."""
    optimiser = torch.optim.Adam(model.parameters(), RATE, weight_decay=DECAY)
    return Run(
        batches=lambda order: DataLoader([graphs[i] for i in order], batch_size=BATCH),
        scores=model,
        labels=lambda batch: batch.y,
        optimiser=optimiser,
        graphs=len(graphs),
    )


def ours(graphs: list[Data], model: GIN | PolyGIN) -> tuple[Run, float]:
    """Our loop, batches cut from the colour classes included; and the seconds that finding these took, once."""
    start = perf_counter()
    quotient = Quotient.of(PackedGraphs.pack(graphs))
    took = perf_counter() - start
    quotient = replace(quotient, features=quotient.features.to(graphs[0].x.dtype))
    optimiser = torch.optim.Adam(model.parameters(), RATE, weight_decay=DECAY, fused=True)
    cut = range(0, len(graphs), BATCH)
    run = Run(
        batches=lambda order: (quotient.batch(order[k : k + BATCH]) for k in cut),
        scores=lambda batch: logits(model, batch),
        labels=lambda batch: batch.labels,
        optimiser=optimiser,
        graphs=len(graphs),
    )
    return run, took


def pair(graphs: list[Data]) -> tuple[Run, Run, float]:
    """The plain loop and ours with the same GIN, of the dtype of the graphs."""
    torch.manual_seed(0)
    gin, theirs = GIN(14, 2, dropout=0.0), PlainGIN(14, 2)
    theirs.load_state_dict(renamed(gin))
    dtype = graphs[0].x.dtype
    run, took = ours(graphs, gin.to(dtype))
    return plain(graphs, theirs.to(dtype)), run, took


def difference(graphs: list[Data]) -> float:
    """The largest relative difference of the two GINs' losses in one epoch over these graphs."""
    first, second, _ = pair(graphs)
    first()
    second()
    return float(np.abs(np.array(first.losses) / np.array(second.losses) - 1).max())


def measure(settings: Settings, say: Say) -> Record:
    """Seconds per epoch of the three, and how far the two GINs' losses differ."""
    graphs, source = _graphs(settings)
    theirs, gin, took = pair(graphs)
    torch.manual_seed(0)
    polygin, _ = ours(graphs, PolyGIN(14, 2, dropout=0.0))
    times = timed({PLAIN: theirs, OUR_GIN: gin, OUR_POLYGIN: polygin}, settings, seconds=12.0, most=5)
    steps = graphs[: STEPS * BATCH]
    double = [Data(x=g.x.double(), edge_index=g.edge_index, y=g.y) for g in steps]
    found = {
        "source": source,
        "graphs": len(graphs),
        "nodes": sum(g.num_nodes or 0 for g in graphs),
        "batch": BATCH,
        "refinement_seconds": took,
        "times": {name: asdict(t) for name, t in times.items()},
        "difference": {"float64": difference(double), "float32": difference(steps)},
    }
    say(f"{source}: {ratio(found, OUR_GIN):.2f} of the plain loop's time per epoch")
    return found


def _graphs(settings: Settings) -> tuple[list[Data], str]:
    count = settings.pick(GRAPHS, 160)
    try:
        data = load("mutagenicity")
    except (DataError, OSError):
        return saturated(count, seed=settings.seed), "graphs made in Mutagenicity's shape"
    chosen = [data[int(i)] for i in data.split().train[:count]]
    return [Data(x=g.x, edge_index=g.edge_index, y=g.y) for g in chosen], "Mutagenicity's training part"


def ratio(record: Record, name: str) -> float:
    """Median seconds per epoch over those of the plain loop."""
    return float(record["times"][name]["median"] / record["times"][PLAIN]["median"])


def claims(record: Record) -> list[Claim]:
    """Half the time, the same losses."""
    return [
        Claim("training: time per epoch over that of the plain PyG loop, GIN", ratio(record, OUR_GIN), 0.5),
        Claim(
            f"training: largest relative difference of the losses, {STEPS} steps in float64",
            record["difference"]["float64"],
            1e-12,
        ),
    ]


def text(record: Record) -> str:
    """A row for each loop."""
    rows = []
    for name in (PLAIN, OUR_GIN, OUR_POLYGIN):
        times = Times(**record["times"][name])
        rows.append([name, f"{times.median:.2f} ({times.minimum:.2f})", f"{ratio(record, name):.2f}"])
    return (
        f"{record['graphs']:,} graphs ({record['source']}), {record['nodes'] / record['graphs']:.1f} nodes on average, "
        f"batches of {record['batch']}, hidden 300, three layers and head; collation included.\n\n"
        + table(["loop", "seconds per epoch, median (minimum)", "of the PyG loop"], rows)
        + f"\n\nOurs needs the colour classes of the data set first, {record['refinement_seconds']:.1f} s, once. The "
        f"losses of the two GINs differ by {record['difference']['float64']:.0e} at most, relatively, in float64, "
        f"and by {record['difference']['float32']:.0e} in float32 ({STEPS} steps)."
    )


PART = Part("training", "Training: seconds per epoch", measure, text, claims)
