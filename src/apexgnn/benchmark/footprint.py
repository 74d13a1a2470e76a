"""Memory and time of one attribution of many graphs, in a process of its own: `python -m apexgnn.benchmark.footprint`.

The peak is the kernel's high-water mark of this process's resident memory, less what was resident when model and
graphs were in place, so it is an upper bound of what the attribution needed. `getrusage` will not do on Linux: a new
process inherits the high-water mark of the one that started it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from apexgnn.attribution import Attribution
from apexgnn.benchmark.molecules import like_mutagenicity
from apexgnn.benchmark.part import Settings
from apexgnn.benchmark.timing import timed
from apexgnn.explain import attribute, attribute_many
from apexgnn.nn import PolyGIN

WAYS = ("one call", "stream")


def in_own_process(way: str, graphs: int, settings: Settings) -> dict[str, Any]:
    """What `measure` gives, in a fresh process."""
    numbers = [str(n) for n in (graphs, settings.threads, settings.seed, int(settings.quick))]
    command = [sys.executable, "-m", "apexgnn.benchmark.footprint", way, *numbers]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return found


def measure(way: str, graphs: int, settings: Settings) -> dict[str, Any]:
    """Attribute graphs of Mutagenicity's shape, once for the memory and then for the time."""
    torch.manual_seed(settings.seed)
    model = PolyGIN(14, 2).eval()
    dataset = like_mutagenicity(graphs, seed=settings.seed)
    batch = Batch.from_data_list(dataset) if way == "one call" else None

    def explain() -> float:
        """The largest residual, as a share of Σ|φ|."""
        if batch is not None:
            results = [attribute(model, batch)]
        else:
            results = list(attribute_many(model, dataset, progress=False))
        return max(float((r.residual.abs() / _size(r)).max()) for r in results)

    before = resident()
    worst = explain()
    peak = highest() - before
    times = timed({way: explain}, settings, seconds=20.0, most=5)
    return {
        "graphs": graphs,
        "nodes": sum(data.num_nodes or 0 for data in dataset),
        "edges": sum(data.num_edges for data in dataset),
        "peak_bytes": peak,
        "model_bytes": sum(p.nbytes for p in model.parameters()),
        "worst_residual": worst,
        "times": asdict(times[way]),
    }


def _size(result: Attribution) -> Tensor:
    """Σ|φ| of every graph."""
    assert result.condition is not None
    return result.condition * (result.score - result.baseline_score + result.residual).abs()


def resident() -> int:
    """Bytes of resident memory now."""
    return _status("VmRSS")


def highest() -> int:
    """The most there has been of it."""
    return _status("VmHWM")


def _status(field: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))
    except (OSError, StopIteration):  # macOS, where no mark is inherited and the unit is the byte
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    how, count, threads, seed, quick = sys.argv[1:]
    torch.set_num_threads(int(threads))
    print(json.dumps(measure(how, int(count), Settings(int(threads), bool(int(quick)), int(seed)))))
