"""Ten thousand molecules: in one call on one batch, and as a stream."""

from __future__ import annotations

from apexgnn.benchmark.footprint import WAYS, in_own_process
from apexgnn.benchmark.part import Claim, Part, Record, Say, Settings, table
from apexgnn.benchmark.timing import Times

NAMES = {"one call": "`attribute` on one `Batch`", "stream": "`attribute_many`"}


def measure(settings: Settings, say: Say) -> Record:
    """Time and memory of both ways, each in a process of its own."""
    record: Record = {}
    for way in WAYS:
        record[way] = found = in_own_process(way, settings.pick(10_000, 300), settings)
        say(f"{way}: {rate(found):.0f} graphs per second, {found['peak_bytes'] / 2**20:.0f} MiB")
    return record


def rate(found: Record) -> float:
    """Graphs per second."""
    return float(found["graphs"] / found["times"]["median"])


def claims(record: Record) -> list[Claim]:
    """The memory of one call."""
    found = record["one call"]
    text = f"peak memory above the model's, {found['graphs']:,} molecules in one call"
    return [Claim(text, found["peak_bytes"] / 2**20, 1024.0, unit=" MiB")]


def text(record: Record) -> str:
    """A row for each way."""
    rows = []
    for way, found in record.items():
        times = Times(**found["times"])
        rows.append(
            [
                NAMES[way],
                f"{found['graphs']:,}",
                f"{times.median:.2f} ({times.minimum:.2f})",
                f"{rate(found):,.0f}",
                f"{found['peak_bytes'] / 2**20:.0f} MiB",
                f"{found['worst_residual']:.0e}",
            ]
        )
    first = record["one call"]
    nodes, edges = (first[key] / first["graphs"] for key in ("nodes", "edges"))
    header = ["way", "graphs", "seconds, median (minimum)", "graphs per second", "peak memory", "residual"]
    return (
        f"Graphs of Mutagenicity's shape: {nodes:.1f} nodes and {edges:.1f} directed edges on average. Peak of the "
        "resident memory above what model and graphs take, which includes the results (of the stream, all are "
        "kept); the residual is the largest |Σφ − (f(X) − f(0))| / Σ|φ|.\n\n" + table(header, rows)
    )


PART = Part("stream", "Ten thousand molecules", measure, text, claims)
