"""Networks made of PyTorch Geometric's own layers, which `attribute` carries a PathTensor through.

Stacks of GCNConv, SAGEConv and GINConv with L quadratic blocks, the last of which is the head, against Gauss–Legendre
with the certified number of points, 2^(L−1): by `apexgnn.integrated_gradients`, which takes as many points side by
side as fit its memory, and by a plain function that takes all of them; and one point after the other.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GINConv, SAGEConv, global_mean_pool

from apexgnn.benchmark.contenders import check, frozen, gauss, in_turn, ours, quadrature_of_ours, side_by_side
from apexgnn.benchmark.molecules import Graphs, alike
from apexgnn.benchmark.part import Claim, Part, Record, Say, Settings, plural, table
from apexgnn.benchmark.timing import Times, timed
from apexgnn.figures.plots import COLOURS, SERIES, axes_of, finish, new_figure
from apexgnn.nn import PolyActivation

OURS, OWN_IG, BATCHED, IN_TURN = "attribute", "integrated_gradients", "side by side", "in turn"
KINDS = ("GCN", "SAGE", "GIN")


class Stack(nn.Module):
    """L − 1 layers, each followed (or, for GIN, filled) by a quadratic activation; mean; a quadratic head.

    >>> Stack("GCN", 3, width=8)(torch.rand(4, 14), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([1, 2])
    """

    def __init__(self, kind: str, blocks: int, *, width: int = 300) -> None:
        super().__init__()
        ends = [(14 if k == 0 else width, width) for k in range(blocks - 1)]
        self.convs = nn.ModuleList(_layer(kind, a, b) for a, b in ends)
        self.acts = nn.ModuleList(nn.Identity() if kind == "GIN" else PolyActivation() for _ in ends)
        self.head = nn.Sequential(nn.Linear(width, width), PolyActivation(), nn.Linear(width, 2))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Logits [G, 2]."""
        for conv, act in zip(self.convs, self.acts, strict=True):
            x = act(conv(x, edge_index))
        logits: Tensor = self.head(global_mean_pool(x, batch))
        return logits


def _layer(kind: str, a: int, b: int) -> nn.Module:
    if kind == "GIN":
        layer: nn.Module = GINConv(nn.Sequential(nn.Linear(a, b), PolyActivation(), nn.Linear(b, b)))
    else:
        layer = GCNConv(a, b) if kind == "GCN" else SAGEConv(a, b)
    return layer


def measure(settings: Settings, say: Say) -> Record:
    """Times for every kind, depth and number of graphs."""
    rows: list[dict[str, Any]] = []
    counts, depths = settings.pick((1, 8, 64), (1,)), settings.pick((3, 4, 5), (3,))
    for count in counts:
        graphs = Graphs.joined(alike(count, seed=settings.seed))
        for kind in KINDS:
            for blocks in depths:
                row = _measured(settings, graphs, kind, blocks)
                rows.append(row)
                say(
                    f"{kind}, L = {blocks}, {plural(count)}: {relative(row):.2f} of the time of the faster batch"
                )
    return {"rows": rows}


def _measured(settings: Settings, graphs: Graphs, kind: str, blocks: int) -> dict[str, Any]:
    torch.manual_seed(settings.seed)
    model, rule = Stack(kind, blocks).eval(), gauss(2 ** (blocks - 1))
    still = frozen(model)
    target = model(*graphs[:3]).argmax(dim=1)
    truth = in_turn(frozen(model).double(), graphs.double(), target, rule)
    calls = {
        OURS: partial(ours, model, graphs, target),
        OWN_IG: partial(quadrature_of_ours, model, graphs, target, len(rule)),
        BATCHED: partial(side_by_side, still, graphs, target, rule),
        IN_TURN: partial(in_turn, still, graphs, target, rule),
    }
    worst = max(check(call(), truth, name=f"{kind}, {way}") for way, call in calls.items())
    times = timed(calls, settings, seconds=1.0)
    return {
        "kind": kind,
        "blocks": blocks,
        "graphs": graphs.number,
        "times": {name: asdict(t) for name, t in times.items()},
        "error": worst,
    }


def relative(row: Record, *others: str) -> float:
    """Our median over the smallest median of the others (by default the two that batch points)."""
    return float(
        row["times"][OURS]["median"]
        / min(row["times"][other]["median"] for other in others or (OWN_IG, BATCHED))
    )


def claims(record: Record) -> list[Claim]:
    """The worst case of each kind."""
    found = []
    for kind in KINDS:
        worst = max((row for row in record["rows"] if row["kind"] == kind), key=relative)
        text = (
            f"{kind} stacks, L ≥ 3: time over that of certified Gauss–Legendre side by side, at most "
            f"(at L = {worst['blocks']}, {plural(worst['graphs'])})"
        )
        found.append(Claim(text, relative(worst), 1.0))
    return found


def text(record: Record) -> str:
    """A row for each case."""
    header = [
        *("layers", "L", "graphs", "attribute", "integrated_gradients", "side by side", "in turn"),
        *("attribute / faster batch", "attribute / fastest"),
    ]
    rows = []
    for row in record["rows"]:
        times = [Times(**row["times"][way]) for way in (OURS, OWN_IG, BATCHED, IN_TURN)]
        cells = [way.ms for way in times]
        both = [f"{relative(row):.2f}", f"{relative(row, OWN_IG, BATCHED, IN_TURN):.2f}"]
        rows.append([row["kind"], str(row["blocks"]), str(row["graphs"]), *cells, *both])
    return (
        "Networks of PyTorch Geometric's layers, 14 → 300 → 2, graphs of 30 nodes, float32. Milliseconds, median "
        "(minimum); all Gauss–Legendre with the certified 2^(L−1) points. `attribute` and `integrated_gradients` "
        "also call the model for f(X) and f(X′) and check completeness; `side by side` and `in turn` do not.\n\n"
        + table(header, rows)
    )


def figure(record: Record) -> Figure:
    """Our time relative to the faster batch, a panel for each kind."""
    drawing = new_figure(9.0, 3.3, "PyG's own layers: time of attribute relative to certified Gauss–Legendre")
    panels = axes_of(drawing, 1, len(KINDS), sharey=True)
    counts = sorted({row["graphs"] for row in record["rows"]})
    for panel, kind in zip(panels, KINDS, strict=True):
        for count, colour in zip(counts, SERIES, strict=False):
            mine = [row for row in record["rows"] if (row["kind"], row["graphs"]) == (kind, count)]
            depths = [row["blocks"] for row in mine]
            panel.plot(depths, [relative(row) for row in mine], "o-", color=colour, label=plural(count))
        panel.axhline(1, color=COLOURS["line"], lw=1, ls="--")
        panel.set(title=kind, xticks=sorted({row["blocks"] for row in record["rows"]}))
    panels[0].set(ylabel="of the time of the faster batch", ylim=(0, None))  # shared, so after all is drawn
    panels[-1].legend(frameon=False, fontsize=8.5)
    return finish(drawing, xlabel="quadratic blocks L")


PART = Part("engine", "Other people's layers", measure, text, claims, figure)
