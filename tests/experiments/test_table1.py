"""Table 1: the arithmetic against scipy, cells that survive crashes, and one cell trained for real."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

import apexgnn
from apexgnn.errors import InputError
from apexgnn.experiments import table1, table1_page
from apexgnn.training import Recipe, recipe
from apexgnn.training.run import Workload


def cell(dataset="bbbp", model="polygin", seed=0, test=90.0, **other):
    fixed = {
        "recipe": "fast",
        "parameters": 546306,
        "epochs": 40,
        "encoder": None,
        "machine": "a machine, 2 cores",
    }
    return (
        {"dataset": dataset, "model": model, "seed": seed, "test_accuracy": test}
        | fixed
        | {"versions": {"torch": "2"}, **other}
    )


@pytest.mark.parametrize("n", range(2, 31))
def test_the_interval_is_scipys(n):
    rng = np.random.default_rng(n)
    first, second = rng.normal(size=(2, n))
    ours = table1_page.paired(first.tolist(), second.tolist())
    theirs = stats.ttest_rel(first, second).confidence_interval(0.95)
    np.testing.assert_allclose((ours.low, ours.high), (theirs.low, theirs.high), atol=1e-4)


@pytest.mark.parametrize("n", [1, 31])
def test_too_few_or_too_many_pairs_are_refused(n):
    with pytest.raises(InputError, match="pairs"):
        table1_page.paired([0.0] * n, [1.0] * n)


def test_the_table_pairs_by_seed():
    cells = [cell(seed=s, test=90.0 + s) for s in (2, 0, 1)] + [
        cell(model="gin", seed=s, test=89.0) for s in (1, 0)
    ]
    text = table1_page.table(cells)
    assert "| bbbp | fast | PolyGIN | 546,306 | 40 | 3 | 91.00 ± 1.00 | 89.85 ± 0.81 | +1.50 [" in text
    assert "| bbbp | fast | GIN | 546,306 | 40 | 2 | 89.00 ± 0.00 | 89.90 ± 1.09 |" in text


def test_a_later_cell_replaces_an_earlier_one():
    assert "| 1 | 80.00 |" in table1_page.table([cell(test=70.0), cell(test=80.0)])


def test_the_notes_name_the_encoder(tmp_path):
    (tmp_path / "table1.jsonl").write_text(json.dumps(cell("graph-sst2", encoder="some-encoder")) + "\n")
    assert "some-encoder" in table1_page.write_table(tmp_path)
    assert (tmp_path / "table1.md").read_text().startswith("# Table 1")


def test_a_torn_line_is_no_cell_and_harms_no_other(tmp_path):
    path = tmp_path / "cells.jsonl"
    path.write_text(json.dumps(cell()) + "\n" + json.dumps(cell(seed=1))[:40])
    table1.append_cell(path, cell(seed=2))
    assert [c["seed"] for c in table1.read_cells(path)] == [0, 2]


def test_a_cell_is_worked_on_by_one_process(tmp_path):
    code = "import sys; from apexgnn.experiments.table1 import claimed; from pathlib import Path\n"
    code += "with claimed(Path(sys.argv[1])) as mine: print(mine)"
    with table1.claimed(tmp_path) as mine:
        assert mine
        other = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
        )
        assert other.stdout.strip() == "False"
    with table1.claimed(tmp_path) as mine:
        assert mine


def test_cells_are_trained_once_and_appended(tmp_path, monkeypatch):
    monkeypatch.setattr(table1, "SOURCE", {})
    short = Recipe("fast", 2, 1e-5, prepared=True, clip=1.0)
    monkeypatch.setattr(table1, "recipe", lambda name, **cell: recipe(name, **cell) and short)
    results, told = tmp_path / "cells.jsonl", []
    for seeds in (range(1), range(2), range(2)):
        table1.reproduce(
            results, datasets=["ba-shapes"], seeds=seeds, runs=tmp_path / "runs", report=told.append
        )
    cells = table1.read_cells(results)
    assert [(c["model"], c["seed"]) for c in cells] == [
        ("polygin", 0),
        ("gin", 0),
        ("polygin", 1),
        ("gin", 1),
    ]
    assert [c["parameters"] for c in cells[:2]] == [547208, 546304]
    assert len(told) == 4
    assert (tmp_path / "runs" / "ba-shapes-gin-fast-1" / "metrics.csv").read_text().count("\n") == 3
    assert not list(tmp_path.rglob("state.safetensors"))


def test_splits_drawn_by_the_seed_stay_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(table1, "SOURCE", {})
    short = Recipe("fast", 1, 1e-5, prepared=True, clip=1.0)
    monkeypatch.setattr(table1, "recipe", lambda name, **cell: recipe(name, **cell) and short)
    where = {
        "datasets": ["ba-shapes"],
        "models": ["gin"],
        "runs": tmp_path / "runs",
        "report": lambda _: None,
    }
    for way in table1.Splits.FIXED, table1.Splits.BY_SEED, table1.Splits.BY_SEED:
        table1.reproduce(tmp_path / way.file, seeds=range(2), splits=way, **where)
    cells = table1.read_cells(tmp_path / "table1-splits.jsonl")
    assert [(c["splits"], c["split"]) for c in cells] == [("by-seed", f"random, seed {s}") for s in (0, 1)]
    assert len({c["split"] for c in table1.read_cells(tmp_path / "table1.jsonl")}) == 1
    text = table1_page.write_table(tmp_path)
    fixed, other = text.split("## The same with a random 80/10/10 split drawn anew by every seed")
    assert fixed.count("| ba-shapes |") == other.count("| ba-shapes |") == 1


def test_a_scaffold_split_of_a_graph_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(table1, "SOURCE", {})
    with pytest.raises(InputError, match="'random'"):
        table1.reproduce(
            tmp_path / "cells.jsonl", datasets=["ba-shapes"], splits="scaffold", runs=tmp_path / "runs"
        )


def test_the_improved_polygin_keeps_the_certificate():
    work = Workload.of("ba-shapes")
    model = work.model("polygin-plus", recipe("fast", dataset="ba-shapes", model="polygin-plus")).eval()
    assert (model.config["residual"], model.config["theta"]) == (True, "channel")
    assert sum(p.numel() for p in model.parameters()) == 547208 + 4 * 299
    certificate = apexgnn.certify(model, work.data[0], index=0)
    assert (certificate.degree, certificate.points) == (16, 8)


def test_the_improved_polygin_has_a_row_of_its_own():
    cells = [cell(model=kind, seed=s, test=90.0 + s) for kind in table1_page.LABELS for s in (0, 1)]
    rows = table1_page.table(cells).splitlines()[2:]
    assert [row.split("|")[3].strip() for row in rows] == ["GIN", "PolyGIN", "PolyGIN+"]
    assert rows[2].endswith("| 90.50 ± 0.71 |  | +0.00 [+0.00, +0.00] |")


def test_parameter_counts_are_the_papers():
    from apexgnn.nn import GIN, PolyGIN

    counts = {
        "ba-shapes": (10, 4, "node", 546304, 547208),
        "bbbp": (9, 2, "graph", 545402, 546306),
        "bace": (9, 2, "graph", 545402, 546306),
        "graph-sst2": (768, 2, "graph", 773102, 774006),
        "mutagenicity": (14, 2, "graph", 546902, 547806),
    }
    assert set(counts) == set(table1.DATASETS)
    for features, classes, task, gin, polygin in counts.values():
        for kind, expected in ((GIN, gin), (PolyGIN, polygin)):
            assert sum(p.numel() for p in kind(features, classes, task=task).parameters()) == expected
