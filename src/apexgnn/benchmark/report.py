"""From what was measured to a page and its pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from apexgnn.benchmark.part import Part, Record
from apexgnn.figures import save_figure
from apexgnn.files import write_atomically


def write(record: Record, parts: Sequence[Part], *, folder: Path, name: str) -> None:
    """`name`.md and a picture for each part that has one, of the parts that are in the record."""
    done = [part for part in parts if part.name in record["parts"]]
    for part in done:
        if part.figure is not None:
            save_figure(
                part.figure(record["parts"][part.name]["found"]), folder / f"{name}-{part.name}.png", dpi=150
            )
    write_atomically(folder / f"{name}.md", page(record, done, name=name))


def page(record: Record, parts: Sequence[Part], *, name: str) -> str:
    """The claims, then every part."""
    sections = ["# Speed", *_head(record), *filter(None, [claims_table(record, parts)])]
    for part in parts:
        entry = record["parts"][part.name]
        sections += [f"## {part.title}", _made(entry), part.text(entry["found"])]
        if part.figure is not None:
            sections.append(f"![{part.title}]({name}-{part.name}.png)")
    return "\n\n".join(sections) + "\n"


def _head(record: Record) -> list[str]:
    versions = ", ".join(f"{package} {version}" for package, version in record["versions"].items())
    lines = [
        f"{record['machine']}; {versions}. Made by `apexgnn benchmark speed`; how is told in docs/speed.md."
    ]
    if any(entry["quick"] for entry in record["parts"].values()):
        lines.append("**Quick runs: small sizes and few repetitions. These numbers mean little.**")
    return lines


def _made(entry: Record) -> str:
    commit = f", commit {entry['commit']}" if entry["commit"] else ""
    samples, disturbed = disturbances(entry["found"])
    others = f"; {disturbed} of {samples} samples were taken while other processes ran" if samples else ""
    return f"*One run of {entry['seconds']:.0f} s on {entry['threads']} threads{commit}{others}.*"


def disturbances(found: object) -> tuple[int, int]:
    """How many samples there are in a part, and how many of them were disturbed.

    >>> disturbances({"a": [{"samples": 5, "disturbed": 1}], "b": {"samples": 3, "disturbed": 0}})
    (8, 1)
    """
    if isinstance(found, Mapping):
        if "samples" in found and "disturbed" in found:
            return int(found["samples"]), int(found["disturbed"])
        found = list(found.values())
    if not isinstance(found, list):
        return 0, 0
    pairs = [disturbances(value) for value in found]
    return sum(samples for samples, _ in pairs), sum(bad for _, bad in pairs)


def claims_table(record: Record, parts: Sequence[Part]) -> str:
    """What is wanted and what was measured, one line each; nothing where nothing is wanted."""
    lines = []
    for part in parts:
        lines += [f"| {claim} |" for claim in part.claims(record["parts"][part.name]["found"])]
    return "\n".join(["| wanted of | measured | wanted | |", "|:--|--:|--:|:--|", *lines]) if lines else ""
