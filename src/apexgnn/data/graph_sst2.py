"""Graph-SST2: is a phrase of a film review positive? (Socher et al. 2013; as graphs, Yuan et al. 2022.)

70,042 phrases; nodes are tokens with contextual vectors, edges the arcs of a dependency parse in both
directions. Label 1 = positive. The split is the treebank's: 67,349 / 872 / 1,821.

Two ways to have it:

- DIG's published files, in `<root>/Graph-SST2/raw/`;
- rebuilt from the sentences in `<root>/sst2/raw/{train_full,dev,test}.tsv` by `prepare` (see `text`), which
  leaves a folder `graph-sst2`. Which parser and encoder made it stands in `provenance.made`; numbers got with
  another encoder than the published one are numbers of another data set, and must say so.
"""

from __future__ import annotations

import csv
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from apexgnn.data import dig, text
from apexgnn.data.dataset import Spec
from apexgnn.data.encoder import ENCODER, Encoder
from apexgnn.data.packed import PackedGraphs
from apexgnn.data.prepared import FEATURES, open_folder, read_meta, write_meta
from apexgnn.data.sources import RawFile, cache_folder, cached, locate
from apexgnn.errors import DataError

NAME = "graph-sst2"
DIG = "Graph-SST2/raw"
FILES = (
    RawFile("sst2/raw/train_full.tsv", "48eac26399f8456935f81dd9e3a745c1430adb6c62e233ccfe22db4a0d15d1d1"),
    RawFile("sst2/raw/dev.tsv", "54a9c12c77e402fc14d6a66a506f24d999f596b0176eb777c972cccc2f9cc4b0"),
    RawFile("sst2/raw/test.tsv", "4c395e34c8ae196d76abc3724c42336f2e17ad6dab6977be7a690f4c36b140ca"),
)


def read(spec: Spec, root: Path | None) -> tuple[PackedGraphs, dict[str, Any]]:
    """The prepared graphs, or DIG's; features stay on the disk until asked for."""
    for folder in _prepared(root):
        if (meta := read_meta(folder)) is not None:
            return open_folder(folder), {key: value for key, value in meta.items() if key != "format"}
    if root is not None and (raw := root / DIG).is_dir():
        stamps = {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in raw.iterdir()}
        graphs = cached(NAME, stamps, lambda: dig.read(raw, "Graph-SST2"))
        return graphs, {"encoder": "bert-base-uncased, as published by DIG"}
    raise DataError(
        NAME,
        got="neither prepared graphs nor DIG's files in " + " or ".join(map(str, _prepared(root))),
        expected="one of them",
        fix="run `apexgnn data prepare graph-sst2 --data FOLDER` with the sentences in FOLDER/sst2/raw, or put "
        f"DIG's files into FOLDER/{DIG}",
    )


def at_hand(root: Path | None) -> bool:
    """Whether `read` would find something."""
    published = root is not None and (root / DIG).is_dir()
    return published or any(read_meta(folder) is not None for folder in _prepared(root))


def _prepared(root: Path | None) -> list[Path]:
    return [folder / NAME for folder in (root, cache_folder()) if folder is not None]


def prepare(
    root: Path | None,
    *,
    parser: str = text.PARSER,
    encoder: str = ENCODER,
    precision: str = "float32",
    out: str | os.PathLike[str] | None = None,
    progress: text.Progress | None = None,
) -> Path:
    """Rebuild the graphs from the sentences; a run that was killed goes on where it was.

    Args:
        root: the folder with `sst2/raw`.
        parser: a spaCy model.
        encoder: a transformer on the hub, or a folder that holds one.
        precision: "float32" or "bfloat16".
        out: the folder under which `graph-sst2` is made; the cache by default.
        progress: called with a stage, how many sentences are done, and of how many.
    """
    folder = (Path(out) if out is not None else cache_folder()) / NAME
    if read_meta(folder) is not None:
        return folder
    sentences, y, split = read_sentences(root)
    working = folder.with_name(f"{NAME}.partial")
    made = text.build(
        sentences,
        working,
        parser=text.load_parser(parser),
        encoder=Encoder(encoder, precision),
        graph={"y": y, "split": split},
        progress=progress,
    )
    with (working / FEATURES).open("rb") as features:
        made["features_sha256"] = hashlib.file_digest(features, "sha256").hexdigest()
    write_meta(working, made)
    working.rename(folder)
    for leftover in (text.JOB, text.MARK):
        (folder / leftover).unlink()
    return folder


def read_sentences(root: Path | None) -> tuple[list[str], np.ndarray, np.ndarray]:
    """All sentences, their labels, and 0, 1 or 2 for train, dev and test."""
    sentences, labels, parts = [], [], []
    for part, file in enumerate(FILES):
        path = locate(file, root)
        assert path is not None
        with path.open(newline="", encoding="utf-8") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                sentences.append(row["sentence"].strip())
                labels.append(int(row["label"]))
                parts.append(part)
    return sentences, np.array(labels, dtype=np.int64), np.array(parts, dtype=np.int8)


SPEC = Spec(
    name=NAME,
    task="graph",
    features=768,
    classes=2,
    labels=("negative", "positive"),
    source="Stanford Sentiment Treebank (SST-2), as kept by github.com/eyalbd2/Reproducing-AutoPrompt at 6288fb5b",
    licence="none stated for the data (the repository: Apache-2.0)",
    read=read,
    graphs=70042,
    splits=("published", "random"),
    files=FILES,
)
