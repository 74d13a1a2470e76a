"""Seconds per graph of every explainer, and of one explainer's fidelity, on graphs of Mutagenicity's shape.

    python benchmarks/peers.py [--threads 2] [--graphs 3] [--slow] [--out results/peers_speed.json]

30-node molecules with 14 one-hot features; GIN and PolyGIN of the paper's size (hidden 300), with the weights that they
are born with, for cost does not depend on training (SubgraphX's and FlowX's does a little). Each explainer runs with
its defaults, once to warm up, then on every graph; medians are reported, of the clock and of processor time, which a
busy machine disturbs less (with one thread the two should agree). Fidelity: 100 graphs of 20 to 40 nodes × 9
sparsities × 10 permutations × 2 directions = 18,000 evaluations.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import torch
from torch import nn
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from apexgnn import NotPolynomialError, peers
from apexgnn.files import write_atomically
from apexgnn.metrics import Protocol, fidelity
from apexgnn.nn import GIN, PolyGIN

SLOW = ("subgraphx",)


def molecule(nodes: int, generator: torch.Generator) -> Data:
    """A random tree of small degree with a ring closure for every ten atoms: as many bonds as in Mutagenicity."""
    parents = [int(torch.randint(max(0, v - 3), v, (1,), generator=generator)) for v in range(1, nodes)]
    forth = torch.stack([torch.tensor(parents), torch.arange(1, nodes)])
    rings = torch.randint(nodes - 5, (nodes // 10,), generator=generator)
    forth = torch.cat([forth, torch.stack([rings, rings + 5])], dim=1)
    kinds = torch.randint(14, (nodes,), generator=generator)
    return Data(x=one_hot(kinds, 14).float(), edge_index=torch.cat([forth, forth.flip(0)], dim=1))


class Stopwatch:
    """Seconds since it was made, by the clock and of the processor."""

    def __init__(self) -> None:
        self.clock, self.processor = perf_counter(), process_time()

    def read(self) -> tuple[float, float]:
        return perf_counter() - self.clock, process_time() - self.processor


def explaining(model: nn.Module, graphs: list[Data], names: list[str]) -> dict[str, dict[str, float | str]]:
    """Median seconds per graph, and evaluations, of each explainer."""
    rows: dict[str, dict[str, float | str]] = {}
    for name in names:
        explainer = peers.get(name).fit(model, graphs)
        times, evaluations = [], []
        try:
            if name not in SLOW:
                explainer.explain(model, graphs[0])
            for graph in graphs:
                watch = Stopwatch()
                evaluations.append(explainer.explain(model, graph).evaluations)
                times.append(watch.read())
        except NotPolynomialError:
            rows[name] = {"refused": "not polynomial"}
            continue
        clock, processor = (median(column) for column in zip(*times, strict=True))
        rows[name] = {"seconds": clock, "processor_seconds": processor, "evaluations": median(evaluations)}
        print(
            f"{type(model).__name__:8} {name:18} {clock:9.4f} s  processor {processor:9.4f} s  "
            f"NFE {median(evaluations):9.0f}",
            flush=True,
        )
    return rows


def fitting(model: nn.Module, graphs: list[Data]) -> tuple[float, float]:
    """Seconds per graph and epoch to fit PGExplainer."""
    explainer = peers.get("pgexplainer", epochs=2)
    watch = Stopwatch()
    explainer.fit(model, graphs)
    clock, processor = watch.read()
    return clock / 2 / len(graphs), processor / 2 / len(graphs)


def scoring(model: nn.Module, generator: torch.Generator, graphs: int = 100) -> tuple[float, float]:
    """Seconds for one explainer's fidelity on 100 graphs."""
    sizes = torch.randint(20, 41, (graphs,), generator=generator).tolist()
    molecules = [molecule(size, generator) for size in sizes]
    scores = [torch.rand(size, generator=generator) for size in sizes]
    watch = Stopwatch()
    fidelity(model, molecules, scores=scores, protocol=Protocol(correct_only=False))
    return watch.read()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--graphs", type=int, default=3)
    parser.add_argument("--slow", action="store_true", help="the slowest too: " + ", ".join(SLOW))
    parser.add_argument("--only", help="these explainers, with commas")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    graphs = [molecule(30, generator) for _ in range(options.graphs)]
    names = (
        options.only.split(",")
        if options.only
        else [n for n in peers.names() if options.slow or n not in SLOW]
    )
    record: dict[str, object] = {
        "graphs": f"{options.graphs} × 30 nodes, {graphs[0].num_edges} directed edges",
        "threads": options.threads,
        "times": "[clock, processor] where two",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "torch": torch.__version__,
    }
    for network in (GIN, PolyGIN):
        model = network(14, 2).eval()
        record[network.__name__] = explaining(model, graphs, names)
        if not options.only:
            record[f"{network.__name__} pgexplainer fit, s per graph and epoch"] = fitting(model, graphs)
            record[f"{network.__name__} fidelity of 100 graphs, s"] = seconds = scoring(model, generator)
            print(
                f"{network.__name__:8} fidelity of 100 graphs: clock {seconds[0]:.2f} s, processor {seconds[1]:.2f} s"
            )
    if options.out is not None:
        write_atomically(options.out, json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
