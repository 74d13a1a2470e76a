"""Cells: kept under their content, resumed after a kill, shared by processes."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from apexgnn.experiments import explanations, measures
from apexgnn.experiments.cells import Store, content, digest
from apexgnn.experiments.lineup import METHODS
from apexgnn.experiments.subjects import Sample, Subject, Trained
from apexgnn.nn import GIN, PolyGIN


def graphs(count=30, seed=0):
    generator = torch.Generator().manual_seed(seed)
    found = []
    for k in range(count):
        ends = torch.randint(6, (2, 8), generator=generator)
        x = torch.randn(6, 3, generator=generator)
        found.append(Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=torch.tensor([k % 2])))
    return tuple(found)


@pytest.fixture(scope="module")
def toy():
    """Thirty graphs on which both models are right by construction: labels are what both predict."""
    torch.manual_seed(0)
    models = {"polygin": PolyGIN(3, 2, hidden_channels=6).eval(), "gin": GIN(3, 2, hidden_channels=6).eval()}
    kept = []
    with torch.no_grad():
        for graph in graphs(1000):
            said = {int(model(graph.x, graph.edge_index).argmax()) for model in models.values()}
            if len(said) == 1 and len(kept) < 30:
                graph.y = torch.tensor(list(said))
                kept.append(graph)
    assert len(kept) == 30
    trained = {kind: Trained(kind, model, f"hash of {kind}") for kind, model in models.items()}
    return subject_of(trained, tuple(kept))


def subject_of(trained, kept):
    ids = tuple(range(10, 10 + len(kept)))
    own = {kind: Sample(kept, None, ids) for kind in trained}
    return Subject("bbbp", 0, trained, kept, None, ids, own, kept[:5], None)


@pytest.mark.parametrize("change", ["x", "edge_index", "y"])
def test_content_sees_every_number(change):
    (graph,) = graphs(1)
    before = content([graph])
    assert content([graph.clone()]) == before
    graph[change] = graph[change].clone()
    graph[change].view(-1)[0] += 1
    assert content([graph]) != before


def test_the_asked_node_belongs_to_the_content():
    assert content(graphs(1), [0]) != content(graphs(1), [1])


def test_another_model_asks_for_another_cell(toy):
    part = range(5)
    first = explanations.scores_key(toy, "polygin", METHODS["apex"], part)
    assert first == explanations.scores_key(toy, "polygin", METHODS["apex"], part)
    retrained = Trained("polygin", toy.models["polygin"].model, "another hash")
    other = subject_of({**toy.models, "polygin": retrained}, toy.graphs)
    assert digest(first) != digest(explanations.scores_key(other, "polygin", METHODS["apex"], part))
    assert digest(first) != digest(explanations.scores_key(toy, "polygin", METHODS["ig"], part))
    assert digest(first) != digest(explanations.scores_key(toy, "gin", METHODS["apex"], part))


def test_cells_of_one_model_outlive_another_model_of_the_other_kind(tmp_path, toy):
    """A graph that the other model gets wrong leaves the comparison, and the cells stay."""
    before = measures.measure(Store(tmp_path), toy, "gin", METHODS["saliency"])
    cells = set(tmp_path.rglob("*.json"))
    kept = [k for k in range(30) if k not in (3, 27)]
    fewer = replace(toy, graphs=tuple(toy.graphs[k] for k in kept), ids=tuple(toy.ids[k] for k in kept))
    after = measures.measure(Store(tmp_path), fewer, "gin", METHODS["saliency"])
    assert set(tmp_path.rglob("*.json")) == cells
    np.testing.assert_array_equal(after.plus, before.plus[kept])
    assert after.ids == fewer.ids


def test_only_what_is_missing_is_computed(tmp_path, toy, monkeypatch):
    store, calls = Store(tmp_path), []
    original = explanations.one_explained

    def counted(*arguments):
        calls.append(arguments[-1])
        return original(*arguments)

    monkeypatch.setattr(explanations, "one_explained", counted)
    first = measures.measure(store, toy, "polygin", METHODS["apex"])
    warm = 1
    assert len(calls) == 30 + warm
    again = measures.measure(store, toy, "polygin", METHODS["apex"])
    assert len(calls) == 30 + warm
    np.testing.assert_array_equal(first.plus, again.plus)
    scores = sorted((tmp_path / "scores").iterdir())
    assert len(scores) == 2
    scores[0].unlink()
    calls.clear()
    third = measures.measure(store, toy, "polygin", METHODS["apex"])
    assert 0 < len(calls) - warm < 30
    np.testing.assert_array_equal(first.minus, third.minus)


def test_kept_scores_are_the_scores(tmp_path, toy):
    store = Store(tmp_path)
    for _ in range(2):
        (piece, _) = explanations.explained(store, toy, "polygin", METHODS["apex"])
        for place in (0, 7):
            from apexgnn import attribute

            exact = attribute(toy.models["polygin"].model, toy.graphs[place])
            torch.testing.assert_close(piece.attributions[place].nodes, exact.nodes, rtol=1e-6, atol=1e-7)


def test_a_memory_of_selections_changes_nothing(tmp_path, toy):
    memory = {}
    for name in ("apex", "captum-gl8", "random"):
        with_memory = measures.measure(Store(tmp_path / "a"), toy, "polygin", METHODS[name], memory=memory)
        without = measures.measure(Store(tmp_path / "b"), toy, "polygin", METHODS[name])
        np.testing.assert_allclose(with_memory.plus, without.plus, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(with_memory.minus, without.minus, rtol=1e-7, atol=1e-9)


WORK = """
import sys, time
from pathlib import Path
from apexgnn.experiments.cells import Store
store, log = Store(Path(sys.argv[1])), Path(sys.argv[2])

def work(name):
    for step in range(4):
        def compute():
            time.sleep(float(sys.argv[3]))
            with log.open("a") as file:
                file.write(f"{name} {step}\\n")
            return step
        store.cell({"what": "step", "name": name, "step": step}, compute)

store.share([f"job{k}" for k in range(3)], work)
"""


def start(folder, log, pause):
    return subprocess.Popen([sys.executable, "-c", WORK, str(folder), str(log), str(pause)])


def test_a_killed_run_resumes_and_nothing_is_done_twice(tmp_path):
    log = tmp_path / "log"
    process = start(tmp_path / "cells", log, 0.05)
    while not log.exists() or log.read_text().count("\n") < 3:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = log.read_text().splitlines()
    assert 3 <= len(before) < 12
    assert start(tmp_path / "cells", log, 0.0).wait(timeout=60) == 0
    lines = log.read_text().splitlines()
    assert set(lines) == {f"job{k} {step}" for k in range(3) for step in range(4)}
    assert len(lines) <= 13  # the cell that was being written when the process was killed may be done again
    cells = list((tmp_path / "cells" / "step").glob("*.json"))
    assert len(cells) == 12
    assert all(json.loads(path.read_text())["value"] in range(4) for path in cells)
