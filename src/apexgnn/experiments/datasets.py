"""The statistics of the data sets, beside the paper's.

The paper counts 700 nodes of one graph for BA-Shapes, which is what is explained here too. Edges are undirected ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apexgnn.experiments.bench import Report
from apexgnn.experiments.subjects import dataset
from apexgnn.experiments.tables import markdown, record, write_csv
from apexgnn.files import write_atomically
from apexgnn.training.run import SPLIT_SEED

PAPER = {  # task, graphs, mean number of nodes, classes
    "ba-shapes": ("NC", 1, 700.0, 4),
    "bbbp": ("GC", 2039, 24.1, 2),
    "bace": ("GC", 1513, 34.1, 2),
    "graph-sst2": ("GC", 70042, 10.2, 2),
    "mutagenicity": ("GC", 4337, 30.3, 2),
}
COLUMNS = (
    *(
        "dataset",
        "task",
        "graphs",
        "mean_nodes",
        "mean_edges",
        "features",
        "classes",
        "class_counts",
        "split",
        "encoder",
    ),
    *("paper_task", "paper_graphs", "paper_mean_nodes", "paper_classes", "agrees"),
)


def row(name: str, root: Path | None) -> dict[str, Any]:
    """What is counted, what the paper says, and whether they agree to the paper's digits."""
    data = dataset(name, root)
    counted, split = data.statistics(), data.split(seed=SPLIT_SEED)
    task = "NC" if data.task == "node" else "GC"
    mine = (task, counted.graphs, round(counted.mean_nodes, 1), counted.classes)
    parts = "/".join(str(len(part)) for part in (split.train, split.val, split.test))
    return {
        **{
            "dataset": name,
            "task": task,
            "graphs": counted.graphs,
            "mean_nodes": round(counted.mean_nodes, 2),
        },
        **{
            "mean_edges": round(counted.mean_edges, 2),
            "features": counted.features,
            "classes": counted.classes,
        },
        "class_counts": "/".join(map(str, counted.class_counts)),
        "split": f"{split.kind} {parts}",
        "encoder": data.provenance.made.get("encoder") or "",
        **dict(
            zip(("paper_task", "paper_graphs", "paper_mean_nodes", "paper_classes"), PAPER[name], strict=True)
        ),
        "agrees": "yes" if mine == PAPER[name] else "no",
    }


def reproduce(names: Sequence[str], out: Path, *, root: Path | None = None, report: Report = print) -> None:
    """Write datasets.csv and datasets.md."""
    found = [row(name, root) for name in names]
    write_csv(out / "datasets.csv", COLUMNS, found)
    write_atomically(out / "datasets.md", page(found))
    record(out / "provenance.json", "datasets", {})
    report(f"datasets: {len(found)} rows in {out / 'datasets.csv'}")


def page(found: Sequence[dict[str, Any]]) -> str:
    """The table for people."""
    lines = [
        [
            f"{r['dataset']}",
            r["task"],
            f"{r['graphs']:,}",
            f"{r['mean_nodes']:.1f}",
            f"{r['paper_mean_nodes']:.1f}",
            f"{r['mean_edges']:.1f}",
            r["features"],
            r["classes"],
            r["class_counts"],
            r["split"],
            r["agrees"],
        ]
        for r in found
    ]
    head = [
        *("data set", "task", "graphs", "nodes, mean", "paper", "edges, mean", "features", "classes"),
        *("graphs (nodes) per class", "split", "agrees with the paper"),
    ]
    return f"# Data sets\n\nNC: node classification, GC: graph classification.\n\n{markdown(head, lines)}\n"
