"""Seconds per explanation, method by method: the wall clock of one process, on graphs that the methods take in turns.

    for graph in graphs: for method in methods: explain       so that a disturbance of the machine strikes all alike

The order of the methods is drawn anew for each graph. What a method learns once (PGExplainer) is not part of the time;
neither is its first explanation, which warms up. `results/speed.json` of `apexgnn benchmark speed` compares whole
programs; here stands what the fidelity experiments paid per graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from apexgnn.experiments.bench import Bench, Laboratory, Report, subject_of
from apexgnn.experiments.cells import content
from apexgnn.experiments.curves import TITLES
from apexgnn.experiments.explanations import one_explained, ready
from apexgnn.experiments.lineup import LABELS, METHODS, methods_of
from apexgnn.experiments.progress import Progress
from apexgnn.experiments.subjects import Subject
from apexgnn.experiments.tables import record, write_csv
from apexgnn.figures import save_figure
from apexgnn.figures.palette import GREY
from apexgnn.figures.plots import COLOURS, axes_of, finish, new_figure, plain
from apexgnn.training.recipes import MODELS
from apexgnn.training.run import machine

COLUMNS = ("dataset", "model", "method", "seconds", "graphs")
GRAPHS = 20


def count(laboratory: Laboratory) -> int:
    """How many graphs are timed: a fifth of those that are explained, from 5 to 20."""
    return min(GRAPHS, max(5, laboratory.field.graphs // 5))


def timed(subject: Subject, kind: str, graphs: int) -> dict[str, list[float]]:
    """Seconds of every method on so many graphs, the methods in turns."""
    methods = methods_of(kind)
    explainers = {m.name: ready(subject, kind, m) for m in methods}
    rng = np.random.default_rng(0)
    for explainer in explainers.values():
        one_explained(explainer, subject, kind, 0)
    found: dict[str, list[float]] = {m.name: [] for m in methods}
    for place in subject.shared(kind)[:graphs]:
        for k in rng.permutation(len(methods)):
            started = perf_counter()
            one_explained(explainers[methods[k].name], subject, kind, place)
            found[methods[k].name].append(perf_counter() - started)
    return found


def cell(laboratory: Laboratory, bench: Bench) -> dict[str, list[float]]:
    """The times of one bench on this machine, measured where they are not there."""
    subject = subject_of(laboratory.field, bench.dataset, bench.seed)
    graphs = count(laboratory)
    key = {
        "what": "runtime",
        "machine": machine(),
        "model": subject.models[bench.kind].sha256,
        "data": content(subject.graphs[:graphs], None if subject.index is None else subject.index[:graphs]),
        "methods": {m.name: repr(m.explainer(bench.dataset)) for m in methods_of(bench.kind)},
    }
    found: dict[str, list[float]] = laboratory.store.cell(key, lambda: timed(subject, bench.kind, graphs))
    return found


def rows(laboratory: Laboratory, report: Report) -> Iterator[dict[str, Any]]:
    """The rows of `runtime.csv`: models of seed 0."""
    benches = [Bench(dataset, kind, 0) for dataset in laboratory.datasets for kind in MODELS]
    progress = Progress({f"runtime {bench}": 1.0 for bench in benches}, report)
    for bench in benches:
        for method, seconds in cell(laboratory, bench).items():
            yield {
                **{"dataset": bench.dataset, "model": bench.kind, "method": method},
                **{"seconds": float(np.mean(seconds)), "graphs": len(seconds)},
            }
        progress.done(f"runtime {bench}")


def reproduce(laboratory: Laboratory, out: Path, *, report: Report = print) -> None:
    """Write runtime.csv and the figure; one process measures, another one that comes along waits."""
    found: list[dict[str, Any]] = []
    laboratory.store.share(["runtime"], lambda _: found.extend(rows(laboratory, report)))
    write_csv(out / "runtime.csv", COLUMNS, found)
    draw(found, out / "figures" / "runtime")
    record(out / "provenance.json", "runtime", {"graphs": count(laboratory), "seed of the models": 0})
    report(f"runtime: {len(found)} rows in {out / 'runtime.csv'}")


def draw(found: Sequence[Mapping[str, Any]], path: Path) -> None:
    """One panel per data set: a bar per method, our own in its own colour; hatched where GIN is explained."""
    datasets = list(dict.fromkeys(row["dataset"] for row in found))
    figure = new_figure(2.3 * len(datasets) + 2.4, 4.6, "Seconds per explanation (one graph at a time)")
    panels = axes_of(figure, 1, len(datasets), sharey=True)
    names = list(METHODS)[::-1]
    for panel, dataset in zip(panels, datasets, strict=True):
        panel.set_title(TITLES.get(dataset, dataset))
        for kind, shift, face in (("polygin", 0.2, True), ("gin", -0.2, False)):
            mine = {
                r["method"]: float(r["seconds"])
                for r in found
                if (r["dataset"], r["model"]) == (dataset, kind)
            }
            places = [names.index(m) + shift for m in mine]
            edge = [COLOURS["ours"] if METHODS[m].exact else GREY for m in mine]
            panel.barh(
                places,
                list(mine.values()),
                height=0.38,
                color=edge if face else "white",
                edgecolor=edge,
                label="PolyGIN" if face else "GIN",
            )
        panel.set_xscale("log")
        plain(panel.xaxis)
        panel.set_yticks(range(len(names)), [LABELS[name] for name in names])
    finish(figure, xlabel="seconds (logarithmic)")
    for panel in panels:
        panel.tick_params(axis="x", labelrotation=45)
    panels[-1].legend(frameon=False, fontsize=9, loc="upper right")
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in (".pdf", ".svg", ".png"):
        save_figure(figure, path.with_suffix(ending))
