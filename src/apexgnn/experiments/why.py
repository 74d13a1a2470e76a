"""Why single-node methods can be ahead of an exact path attribution at high sparsity: three suspects, measured.

All rankings explain the same PolyGIN, and every graph is masked by the metric's own permutations. With d(A) = p(G) −
p(G∖A) the metric's own effect of masking the nodes A together, averaged over the permutations, and S the best 10 % of
the nodes by some ranking:

    interactions   d(S) against Σ_{v∈S} d({v}): equal if the removed nodes did not interact
    peaks          the share of Σ_v |score_v| that the best 10 % of the nodes hold
    baseline       the same method with another reference: zero, the mean row of the graph, its own rows permuted
    start, end     |f(X′)| and |f(X)|: how far the path goes, in logits
    agreement      Spearman's rank correlation of the scores with d({v})

`removal` ranks by d({v}) itself: no ranking can know more about single nodes. APEX shares an interaction of two nodes
between them and averages the slope over the whole path; occlusion reads the effect at its end alone, as the metric does
when few nodes are masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from apexgnn import peers
from apexgnn.experiments.areas import clustered
from apexgnn.experiments.bench import Bench, Laboratory, Report, subject_of
from apexgnn.experiments.cells import Store, content
from apexgnn.experiments.measures import Array, protocol_of
from apexgnn.experiments.progress import Progress
from apexgnn.experiments.subjects import Subject
from apexgnn.experiments.tables import between, markdown, record, write_csv
from apexgnn.explain.baselines import Permutation
from apexgnn.explain.question import pyg_call
from apexgnn.files import write_atomically
from apexgnn.metrics.masking import kept_counts, permutations
from apexgnn.replicas import evaluate_copies

KIND, GRAPHS, SPARSITY = "polygin", 50, 0.9
COLUMNS = ("dataset", "model", "method", "quantity", "value", "low", "high", "graphs", "seeds")
QUANTITIES = ("joint", "sum", "interaction", "peak", "agreement", "start", "end")
RANKINGS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "apex": ("apex", {}),
    "apex-mean": ("apex", {"baseline": "mean"}),
    "apex-permutation": ("apex", {"baseline": Permutation(draws=20)}),
    "occlusion": ("occlusion", {}),
    "occlusion-mean": ("occlusion", {"baseline": "mean"}),
    "gradcam": ("gradcam", {}),
    "random": ("random", {}),
}
NAMES = {
    "apex": "APEX, zero",
    "apex-mean": "APEX, mean",
    "apex-permutation": "APEX, permutation",
    "occlusion": "Occlusion to zero",
    "occlusion-mean": "Occlusion to the mean",
    "gradcam": "Grad-CAM",
    "random": "Random",
    "removal": "Single removal (the metric's own)",
}


def ranks(values: Array) -> Array:
    """Ranks from 1, ties at their mean.

    >>> ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    found: Array = (last - (counts - 1) / 2)[place]
    return found


def spearman(a: Array, b: Array) -> float:
    """Spearman's rank correlation; NaN where either is constant.

    >>> spearman(np.array([1.0, 2.0, 9.0]), np.array([10.0, 20.0, 21.0]))
    1.0
    """
    x, y = ranks(a) - (len(a) + 1) / 2, ranks(b) - (len(b) + 1) / 2
    scale = np.sqrt((x @ x) * (y @ y))
    return float((x @ y) / scale) if scale else float("nan")


def effects(subject: Subject, place: int, sets: Tensor) -> Array:
    """[K], d(A) for sets A, [K, N] booleans, of the nodes of one graph."""
    graph, model = subject.graphs[place], subject.models[KIND].model
    node = None if subject.index is None else subject.index[place]
    protocol = replace(protocol_of(subject.dataset), seed=subject.ids[place])
    x = graph.x
    assert x is not None
    if str(protocol.masking) == "permutation":
        donors = permutations(len(x), protocol, 0)
        rows = torch.where(sets.unsqueeze(1), donors, torch.arange(len(x)))
        copies = x[rows.flatten(0, 1)]
    else:
        copies = torch.where(sets.unsqueeze(-1), torch.zeros(()), x)
    call = partial(pyg_call(node_task=node is not None), model)
    with torch.no_grad():
        logits = evaluate_copies(call, graph, x=torch.cat([x.unsqueeze(0), copies]), index=node)
    p = logits.double().softmax(-1)[:, int(logits[0].argmax())]
    return (p[0] - p[1:].view(len(sets), -1).mean(1)).numpy()


def examine(subject: Subject, place: int) -> dict[str, dict[str, float]]:
    """Every quantity of every ranking on one graph."""
    graph, model = subject.graphs[place], subject.models[KIND].model
    node = None if subject.index is None else subject.index[place]
    count = graph.num_nodes or 0
    explained = {
        name: peers.get(peer, **options).explain(model, graph, index=node, seed=subject.ids[place])
        for name, (peer, options) in RANKINGS.items()
    }
    scores = {name: attribution.nodes for name, attribution in explained.items()}
    single = effects(subject, place, torch.eye(count, dtype=torch.bool))
    scores["removal"] = torch.from_numpy(single)
    best = kept_counts((SPARSITY,), count)[0]
    sets = torch.zeros(len(scores), count, dtype=torch.bool)
    for k, values in enumerate(scores.values()):
        sets[k, torch.argsort(values, descending=True, stable=True)[:best]] = True
    joint = effects(subject, place, sets)
    found = {}
    for k, (name, values) in enumerate(scores.items()):
        size = values.abs().double().sort(descending=True).values
        total = float(single[sets[k].numpy()].sum())
        found[name] = {
            "joint": float(joint[k]),
            "sum": total,
            "interaction": float(joint[k]) - total,
            "peak": float(size[:best].sum() / size.sum()) if float(size.sum()) else float("nan"),
            "agreement": spearman(values.double().numpy(), single),
            "start": abs(float(explained[name].baseline_score)) if name in explained else float("nan"),
            "end": abs(float(explained[name].score)) if name in explained else float("nan"),
        }
    return found


def examined(store: Store, subject: Subject) -> list[dict[str, dict[str, float]]]:
    """All graphs of a subject, from the store where they are there."""
    graphs, index = subject.graphs[:GRAPHS], None if subject.index is None else subject.index[:GRAPHS]
    key = {
        "what": "why",
        "model": subject.models[KIND].sha256,
        "data": content(graphs, index),
        "rankings": {name: repr(peers.get(peer, **options)) for name, (peer, options) in RANKINGS.items()},
        "sparsity": SPARSITY,
    }
    found: list[dict[str, dict[str, float]]] = store.cell(
        key, lambda: [examine(subject, place) for place in range(len(graphs))]
    )
    return found


def benches_of(laboratory: Laboratory) -> dict[str, Bench]:
    """The models that are examined, by the name of their work."""
    return {f"why {b}".replace(" ", "-"): b for b in laboratory.benches() if b.kind == KIND}


def _subject(laboratory: Laboratory, bench: Bench) -> Subject:
    return subject_of(laboratory.field, bench.dataset, bench.seed)


def computed(laboratory: Laboratory, report: Report) -> None:
    """Examine whatever is not in the store yet, with whoever else is at it."""
    benches = benches_of(laboratory)
    progress = Progress(dict.fromkeys(benches, 1.0), report)

    def work(name: str) -> None:
        examined(laboratory.store, _subject(laboratory, benches[name]))
        progress.done(name)

    laboratory.store.share(benches, work)


def rows(laboratory: Laboratory) -> Iterator[dict[str, Any]]:
    """The rows of `why.csv`: means over graphs and seeds, with bootstrap intervals over graphs."""
    benches = benches_of(laboratory)
    for dataset in laboratory.datasets:
        mine = [_subject(laboratory, bench) for bench in benches.values() if bench.dataset == dataset]
        cells = [examined(laboratory.store, subject) for subject in mine]
        ids: list[Sequence[int]] = [s.ids[: len(cell)] for s, cell in zip(mine, cells, strict=True)]
        for method in NAMES:
            for quantity in QUANTITIES:
                values = [np.array([graph[method][quantity] for graph in cell]) for cell in cells]
                mean, low, high, graphs = clustered(values, ids)
                yield {
                    **{"dataset": dataset, "model": KIND, "method": method, "quantity": quantity},
                    **{"value": mean, "low": low, "high": high, "graphs": graphs, "seeds": len(mine)},
                }


def reproduce(laboratory: Laboratory, out: Path, *, report: Report = print) -> None:
    """Write why.csv and why.md."""
    computed(laboratory, report)
    found = list(rows(laboratory))
    write_csv(out / "why.csv", COLUMNS, found)
    write_atomically(out / "why.md", page(found))
    details = {
        "graphs per model": GRAPHS,
        "model seeds": {name: laboratory.field.seeds_of(name) for name in laboratory.datasets},
        "sparsity": SPARSITY,
    }
    record(out / "provenance.json", "why", details)
    report(f"why: {len(found)} rows in {out / 'why.csv'}")


def page(found: Sequence[Mapping[str, Any]]) -> str:
    """The quantities for people, a table per data set."""
    assert __doc__ is not None
    parts = ["# Single nodes and paths at high sparsity\n", __doc__.split("\n", 2)[2].strip()]
    head = [
        "ranking",
        "masked together, d(S)",
        "one by one, Σd",
        "interaction",
        "held by the best 10 %",
        "agreement with d({v})",
        "|f(X′)|",
        "|f(X)|",
    ]
    for dataset in dict.fromkeys(row["dataset"] for row in found):
        of = {(r["method"], r["quantity"]): r for r in found if r["dataset"] == dataset}

        def cell(method: str, quantity: str, of: Mapping[tuple[str, str], Mapping[str, Any]] = of) -> str:
            row = of[method, quantity]
            return between(float(row["value"]), float(row["low"]), float(row["high"]))

        lines = [[name, *(cell(method, q) for q in QUANTITIES)] for method, name in NAMES.items()]
        parts.append(f"\n## {dataset}\n\n{markdown(head, lines)}")
    return "\n".join(parts) + "\n"
