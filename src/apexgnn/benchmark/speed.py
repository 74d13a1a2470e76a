"""`apexgnn benchmark speed`: its parts, each measured in one run and kept in one file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

import torch

from apexgnn.benchmark import (
    contest,
    depth,
    engine,
    neighbourhoods,
    roofline,
    rounding,
    size,
    stream,
    training,
)
from apexgnn.benchmark.part import Part, Record, Say, Settings
from apexgnn.benchmark.report import write
from apexgnn.errors import InputError
from apexgnn.files import write_atomically
from apexgnn.training.run import commit, machine

PARTS: tuple[Part, ...] = tuple(
    module.PART
    for module in (contest, depth, size, engine, rounding, stream, neighbourhoods, training, roofline)
)


def run(
    names: Sequence[str] = (),
    *,
    settings: Settings,
    folder: Path,
    resume: bool = False,
    report: Say = print,
) -> Record:
    """Measure parts (all by default), keep the others as they are, and write `speed.json`, `speed.md` and pictures.

    Args:
        names: which parts.
        settings: threads, quick or not, seed; quick runs write `speed-quick` instead.
        folder: where the files go.
        resume: leave out what the file has already.
        report: is told what goes on.

    >>> run(["sprint"], settings=Settings(quick=True), folder=Path("results"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    apexgnn.errors.InputError: part: got 'sprint'; expected one of 'contest', 'depth', ...
    """
    wanted = _wanted(names)
    name = "speed-quick" if settings.quick else "speed"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    record: Record = {"parts": {}}
    if file.exists():
        record = json.loads(file.read_text())
    for part in wanted:
        if resume and part.name in record["parts"]:
            report(f"{part.name}: measured before")
            continue
        report(f"{part.name}: {part.title}")
        start = perf_counter()
        with _threads(settings.threads):
            found = part.measure(settings, partial(_indented, report))
        record |= {"machine": machine(), "versions": _versions()}
        record["parts"][part.name] = {
            "quick": settings.quick,
            "threads": settings.threads,
            "seed": settings.seed,
            "seconds": perf_counter() - start,
            "commit": commit(),
            "found": found,
        }
        write_atomically(file, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    write(record, PARTS, folder=folder, name=name)
    return record


def _indented(report: Say, line: str) -> None:
    report(f"  {line}")


def _wanted(names: Sequence[str]) -> Sequence[Part]:
    valid = [part.name for part in PARTS]
    for name in names:
        if name not in valid:
            raise InputError("part", got=repr(name), expected="one of " + ", ".join(map(repr, valid)))
    return [part for part in PARTS if not names or part.name in names]


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _versions() -> dict[str, str]:
    found = {}
    for package in ("apexgnn", "torch", "torch_geometric", "captum"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
