"""Sentences to graphs: alignment, edges, and a job that survives a kill. Parser and encoder are stand-ins."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from apexgnn.data import graph_sst2, load, text
from apexgnn.data.encoder import pool
from apexgnn.data.prepared import open_folder, write_meta
from apexgnn.errors import DataError, MissingDependencyError

SENTENCES = [f"{'very ' * (k % 5)}good film number {k} ." for k in range(40)]


class ToyParser:
    """Tokens are words; each word's head is the word before it."""

    def __init__(self):
        self.meta = {"lang": "xx", "name": "toy", "version": "1"}

    def pipe(self, sentences, batch_size):
        for sentence in sentences:
            tokens, at = [], 0
            for i, word in enumerate(sentence.split()):
                at = sentence.index(word, at)
                token = SimpleNamespace(i=i, idx=at, text=word, head=SimpleNamespace(i=max(i - 1, 0)))
                tokens.append(Sized(token))
                at += len(word)
            yield tokens


class Sized(SimpleNamespace):
    def __init__(self, token):
        super().__init__(**vars(token))

    def __len__(self):
        return len(self.text)


class ToyEncoder:
    """Pieces are characters; a piece's state is its code and its place."""

    width = 3

    def __init__(self, pause=0.0):
        self.description = {"encoder": "toy"}
        self.pause = pause
        self.batches = 0

    def pieces(self, sentences):
        ids = [[0, *map(ord, s), 0] for s in sentences]
        offsets = [[(0, 0), *((k, k + 1) for k in range(len(s))), (0, 0)] for s in sentences]
        return ids, offsets

    def hidden(self, ids):
        time.sleep(self.pause)
        self.batches += 1
        block = torch.tensor(ids, dtype=torch.float32)
        place = torch.arange(block.size(1)).expand_as(block)
        return torch.stack([block, place, torch.ones_like(block)], dim=2)


@pytest.fixture(autouse=True)
def without_spacy(monkeypatch):
    monkeypatch.setattr(text, "require", lambda name: SimpleNamespace(__version__="0"))


def build(folder, *, encoder=None, sentences=SENTENCES, progress=None):
    labels = {"y": np.arange(len(sentences)) % 2}
    return text.build(
        sentences,
        folder,
        parser=ToyParser(),
        encoder=encoder or ToyEncoder(),
        graph=labels,
        progress=progress,
    )


def test_graphs_and_vectors(tmp_path):
    made = build(tmp_path / "set")
    assert made["parser"] == "xx_toy 1"
    assert made["encoder"] == "toy"
    assert made["tokens_without_pieces"] == 0
    graphs = open_folder(tmp_path / "set")
    assert graphs.x.dtype == np.float16
    assert len(graphs) == len(SENTENCES)
    for sentence, graph in zip(SENTENCES, graphs, strict=True):
        words = sentence.split()
        assert graph.tokens == words == [sentence[a:b] for a, b in zip(graph.start, graph.end, strict=True)]
        arcs = {(i, i - 1) for i in range(1, len(words))}
        assert {tuple(e) for e in graph.edge_index.T.tolist()} == arcs | {(b, a) for a, b in arcs}
        assert graph.is_coalesced()
        expected = [sum(map(ord, word)) / len(word) for word in words]
        assert torch.allclose(graph.x[:, 0], torch.tensor(expected), rtol=1e-3)
        middle = [(int(a) + int(b) + 1) / 2 for a, b in zip(graph.start, graph.end, strict=True)]
        assert torch.allclose(graph.x[:, 1], torch.tensor(middle))


@given(st.data())
def test_pool_against_a_loop(data):
    """Random ascending pieces and tokens, against the definition."""
    length = data.draw(st.integers(1, 20))
    cuts = sorted(data.draw(st.sets(st.integers(0, length), min_size=2)))
    pieces = list(pairwise(cuts))
    pieces = [p for p in pieces if data.draw(st.booleans())]
    marks = sorted(data.draw(st.sets(st.integers(0, length), min_size=2)))
    tokens = list(pairwise(marks))
    offsets = [(0, 0), *pieces, (0, 0)]
    hidden = torch.randn(len(offsets), 2, generator=torch.Generator().manual_seed(length))
    got, empty = pool(hidden, offsets, np.array(tokens))
    missing = 0
    for row, (s, e) in zip(got, tokens, strict=True):
        mine = [hidden[k] for k, (a, b) in enumerate(offsets) if a < b and a < e and b > s]
        missing += not mine
        assert torch.allclose(row, torch.stack(mine).mean(0) if mine else torch.zeros(2), atol=1e-6)
    assert empty == missing


def test_progress_counts_up_to_the_end(tmp_path):
    seen = []
    build(tmp_path / "set", progress=lambda *a: seen.append(a))
    assert seen[-1] == ("encode", len(SENTENCES), len(SENTENCES))


def test_a_finished_job_is_not_done_again(tmp_path):
    first = build(tmp_path / "set")
    encoder = ToyEncoder()
    assert build(tmp_path / "set", encoder=encoder) == first
    assert encoder.batches == 0


def test_another_job_in_the_same_folder_is_refused(tmp_path):
    build(tmp_path / "set")
    with pytest.raises(DataError, match="another encoder"):
        build(tmp_path / "set", sentences=SENTENCES[:-1])


SCRIPT = """
import sys
sys.path[:0] = [{here!r}]
import test_text as t
from pathlib import Path
from types import SimpleNamespace
t.text.require = lambda name: SimpleNamespace(__version__="0")
t.text.SECONDS_PER_MARK = 0.0
t.build(Path({folder!r}), encoder=t.ToyEncoder(pause=0.02))
"""


def test_killed_and_resumed_ends_at_the_same_bytes(tmp_path):
    build(tmp_path / "whole")
    folder = tmp_path / "killed"
    script = SCRIPT.format(here=str(Path(__file__).parent), folder=str(folder))
    with subprocess.Popen([sys.executable, "-c", script], env=os.environ) as job:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if (folder / "progress.json").exists():
                break
            time.sleep(0.005)
        job.send_signal(signal.SIGKILL)
    done = json.loads((folder / "progress.json").read_text())["done"]
    assert 0 < done < len(SENTENCES)
    encoder = ToyEncoder()
    build(folder, encoder=encoder)
    assert encoder.batches > 0
    for name in ("x.npy", "graphs.safetensors", "strings.json"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_prepared_graphs_load_from_the_named_folder(tmp_path):
    made = build(tmp_path / "graph-sst2")
    write_meta(tmp_path / "graph-sst2", made)
    dataset = load("graph-sst2", root=tmp_path)
    assert dataset.num_features == 3
    assert dataset.provenance.made["encoder"] == "toy"
    assert isinstance(dataset.graphs.x, np.memmap)


def test_prepare_leaves_a_folder_that_loads(tmp_path, monkeypatch):
    labels = np.arange(len(SENTENCES)) % 2
    monkeypatch.setattr(
        graph_sst2, "read_sentences", lambda root: (SENTENCES, labels, labels.astype(np.int8))
    )
    monkeypatch.setattr(graph_sst2, "Encoder", lambda name, precision: ToyEncoder())
    monkeypatch.setattr(text, "load_parser", lambda name: ToyParser())
    folder = graph_sst2.prepare(None, out=tmp_path)
    assert folder == tmp_path / "graph-sst2"
    assert sorted(os.listdir(folder)) == ["graphs.safetensors", "meta.json", "strings.json", "x.npy"]
    assert os.listdir(tmp_path) == ["graph-sst2"]
    dataset = load("graph-sst2", root=tmp_path)
    assert dataset.y.tolist() == labels.tolist()
    assert len(dataset.split().train) == len(dataset.split().val) == 20
    digest = hashlib.sha256((folder / "x.npy").read_bytes()).hexdigest()
    assert dataset.provenance.made["features_sha256"] == digest
    before = (folder / "meta.json").stat().st_mtime_ns
    assert graph_sst2.prepare(None, out=tmp_path) == folder
    assert (folder / "meta.json").stat().st_mtime_ns == before


def test_neither_prepared_nor_published(tmp_path):
    with pytest.raises(DataError, match="data prepare graph-sst2"):
        load("graph-sst2", root=tmp_path)


def test_a_missing_package_is_named():
    from apexgnn.data.encoder import require

    with pytest.raises(MissingDependencyError, match=r"apexgnn\[text\]"):
        require("no_such_package")
