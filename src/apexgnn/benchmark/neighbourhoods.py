"""A node of a large graph: the cost of its explanation follows its 3-hop neighbourhood and not the graph.

Barabási–Albert graphs (m = 2) of 10² to 10⁵ nodes, a PolyGIN of three layers for nodes, and nodes from the smallest
neighbourhoods to the hubs. Two costs are told apart: what a node costs beside others of the same call,

    marginal = (time of c + 1 copies of the node − time of one) / c,

and what a call costs whatever it explains (edges are looked up by their target, which must be made ready once).
log marginal = a + b log(neighbourhood) + c log(graph) is fitted to all nodes; c is what the graph's size does.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import torch
from matplotlib.figure import Figure
from torch_geometric.data import Data

from apexgnn.benchmark.contenders import check
from apexgnn.benchmark.part import Claim, Part, Record, Say, Settings, table
from apexgnn.benchmark.timing import Times, timed
from apexgnn.explain import attribute_nodes, integrated_gradients
from apexgnn.explain.receptive import Fields
from apexgnn.figures.plots import COLOURS, axes_of, finish, new_figure, plain
from apexgnn.nn import PolyGIN

FEATURES, CLASSES, HOPS = 10, 4, 3
SAMPLE, CHOSEN, TOGETHER = 400, 8, 4096
SHADES = ("#c6a800", "#E69F00", "#D55E00", "#7a1f5c")  # from the smallest graph to the largest


def graph(nodes: int, *, seed: int) -> Data:
    """A Barabási–Albert graph with random features."""
    ends = torch.tensor(list(nx.barabasi_albert_graph(nodes, 2, seed=seed).edges())).t()
    x = torch.randn(nodes, FEATURES, generator=torch.Generator().manual_seed(seed))
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1))


def chosen(data: Data, *, seed: int) -> dict[int, int]:
    """Nodes and the sizes of their neighbourhoods, from a sample and the hubs, spread evenly on a log scale."""
    nodes = int(data.num_nodes or 0)
    fields = Fields.of(data.edge_index, nodes)
    hubs = torch.bincount(data.edge_index[1], minlength=nodes).topk(2).indices.tolist()
    sample = np.random.default_rng(seed).permutation(nodes)[:SAMPLE].tolist()
    sizes = {node: len(fields.around(node, HOPS).nodes) for node in {*sample, *hubs}}
    wanted = np.geomspace(min(sizes.values()), max(sizes.values()), CHOSEN)
    nearest = {min(sizes, key=lambda node: abs(np.log(sizes[node] / goal))) for goal in wanted}
    return {node: sizes[node] for node in sorted(nearest, key=sizes.__getitem__)}


def measure(settings: Settings, say: Say) -> Record:
    """Every chosen node of every graph, alone and with copies of itself."""
    torch.manual_seed(settings.seed)
    model = PolyGIN(FEATURES, CLASSES, task="node").eval()
    rows: list[dict[str, Any]] = []
    for nodes in settings.pick((100, 1_000, 10_000, 100_000), (100, 1_000)):
        data = graph(nodes, seed=settings.seed)
        sizes = chosen(data, seed=settings.seed)
        if nodes <= 1_000:
            _check(model, data, list(sizes))
        copies = {node: max(1, min(8, TOGETHER // size)) for node, size in sizes.items()}
        calls = {}
        for node, more in copies.items():
            calls[f"{node}"] = partial(_explain, model, data, [node])
            calls[f"{node} more"] = partial(_explain, model, data, [node] * (1 + more))
        times = timed(calls, settings, seconds=1.5, most=30)
        for node, size in sizes.items():
            alone, together = times[f"{node}"], times[f"{node} more"]
            rows.append(
                {
                    "graph": nodes,
                    "edges": data.num_edges,
                    "node": node,
                    "degree": int((data.edge_index[1] == node).sum()),
                    "neighbourhood": size,
                    "alone": asdict(alone),
                    "marginal": max(together.median - alone.median, 0.0) / copies[node],
                }
            )
        say(f"{nodes:,} nodes: neighbourhoods of {min(sizes.values()):,} to {max(sizes.values()):,}")
    return {"rows": rows}


def _explain(model: PolyGIN, data: Data, nodes: list[int]) -> None:
    for _ in attribute_nodes(model, data, nodes, target=0):
        pass


def _check(model: PolyGIN, data: Data, nodes: list[int]) -> None:
    """Each node against quadrature on the whole graph in float64."""
    double = PolyGIN(**model.config).double().eval()
    double.load_state_dict(model.state_dict())
    whole = Data(x=data.x.double(), edge_index=data.edge_index)
    for node, part in zip(nodes, attribute_nodes(model, data, nodes, target=0), strict=True):
        truth = integrated_gradients(double, whole, index=node, steps=8, target=0).features
        assert truth is not None
        assert part.features is not None
        found = torch.zeros_like(truth)
        found[part.subset] = part.features.double()
        check(found, truth, name=f"node {node}")


def fitted(record: Record) -> tuple[float, float]:
    """b and c: the exponents of the neighbourhood's size and of the graph's."""
    rows = [row for row in record["rows"] if row["marginal"] > 0]
    logs = np.log([[row["neighbourhood"], row["graph"], row["marginal"]] for row in rows])
    design = np.column_stack([np.ones(len(logs)), logs[:, :2]])
    solution = np.linalg.lstsq(design, logs[:, 2], rcond=None)[0]
    return float(solution[1]), float(solution[2])


def claims(record: Record) -> list[Claim]:
    """That the graph's size does nothing: c is near 0."""
    text = "exponent of the graph's size in a node's cost, at equal neighbourhoods (0: it does not matter)"
    return [Claim(text, abs(fitted(record)[1]), 0.15)]


def text(record: Record) -> str:
    """The smallest, a middle and the largest neighbourhood of each graph, and the fit."""
    b, c = fitted(record)
    rows = []
    for size in sorted({row["graph"] for row in record["rows"]}):
        mine = [row for row in record["rows"] if row["graph"] == size]
        for row in (mine[0], mine[len(mine) // 2], mine[-1]):
            alone, marginal = 1e3 * row["alone"]["median"], 1e3 * row["marginal"]
            rows.append(
                [
                    *(f"{size:,}", f"{row['edges']:,}", f"{row['degree']:,}", f"{row['neighbourhood']:,}"),
                    *(f"{marginal:.2f}", f"{1e3 * marginal / row['neighbourhood']:.1f}"),
                    *(Times(**row["alone"]).ms, f"{max(alone - marginal, 0):.2f}"),
                ]
            )
    header = [
        *("graph: nodes", "directed edges", "degree of the node", "nodes within 3 hops"),
        *("marginal ms", "µs per node within 3 hops", "ms alone, median (minimum)", "ms per call"),
    ]
    return (
        f'Barabási–Albert graphs, m = 2; PolyGIN({FEATURES}, {CLASSES}, task="node"), hidden 300, three layers. '
        "The cost of a node beside others of the same call (marginal), by itself (alone), and their difference, "
        "which is the cost of a call on this graph whatever it explains.\n\n"
        + table(header, rows)
        + f"\n\nFit over {len(record['rows'])} nodes: marginal cost ∝ (nodes within 3 hops)^{b:.2f} · "
        f"(nodes of the graph)^{c:.2f}."
    )


def figure(record: Record) -> Figure:
    """Marginal cost against the neighbourhood, and against the graph."""
    drawing = new_figure(9.0, 3.8, "A node of a large graph: cost against its neighbourhood and its graph")
    left, right = axes_of(drawing, 1, 2, sharey=True)
    sizes = sorted({row["graph"] for row in record["rows"]})
    for size, colour, mark in zip(sizes, SHADES, "osD^", strict=False):
        mine = [row for row in record["rows"] if row["graph"] == size]
        cost = [1e3 * row["marginal"] for row in mine]
        label = f"graph of {size:,} nodes"
        left.plot(
            [row["neighbourhood"] for row in mine], cost, mark, color=colour, label=label, ms=6, alpha=0.9
        )
        right.plot([size] * len(mine), cost, mark, color=colour, ms=6, alpha=0.9)
    left.set(
        xscale="log", yscale="log", xlabel="nodes within 3 hops", ylabel="milliseconds for one more node"
    )
    right.set(xscale="log", xlabel="nodes of the graph")
    for axis in (left.xaxis, left.yaxis, right.xaxis):
        plain(axis)
    right.plot(sizes, [1e3 * _per_call(record, size) for size in sizes], "--", color=COLOURS["line"], lw=1.2)
    right.annotate(
        "once per call",
        (sizes[-1], 1e3 * _per_call(record, sizes[-1])),
        (-6, 6),
        textcoords="offset points",
        ha="right",
        size=8.5,
    )
    left.legend(frameon=False, fontsize=8.5)
    return finish(drawing)


def _per_call(record: Record, size: int) -> float:
    """Time alone less the marginal time, for the smallest neighbourhood of the graph."""
    first = next(row for row in record["rows"] if row["graph"] == size)
    return float(max(first["alone"]["median"] - first["marginal"], 1e-6))


PART = Part("neighbourhoods", "Nodes of large graphs", measure, text, claims, figure)
