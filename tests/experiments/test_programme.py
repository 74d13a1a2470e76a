"""All experiments from the command line, on BA-Shapes alone and very small; what they write is complete."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from apexgnn.cli.reproduce import app
from apexgnn.experiments import completeness, lineup, table1, why
from apexgnn.experiments import runtime as timing
from apexgnn.training import recipe

WANTED = {
    "fidelity-plus.csv": "dataset,model,method,seed,sparsity,value,low,high,graphs",
    "fidelity-minus.csv": "dataset,model,method,seed,sparsity,value,low,high,graphs",
    "disentangle.csv": "dataset,model,method,seed,sparsity,value,low,high,graphs,direction",
    "completeness.csv": "dataset,model,rule,dtype,nfe,error",
    "runtime.csv": "dataset,model,method,seconds,graphs",
}


@pytest.fixture(scope="module")
def small():
    """Less of everything that is not an option."""
    patch = pytest.MonkeyPatch()
    patch.setattr(
        "apexgnn.experiments.subjects.recipe",
        lambda name, **cell: replace(recipe(name, **cell), epochs=100, average=0.9, settle=0.0),
    )
    patch.setattr("apexgnn.experiments.subjects.SOURCE", {})
    cheap = {
        n: m
        for n, m in lineup.METHODS.items()
        if n not in ("pgexplainer", "gnnexplainer", "flowx", "occlusion")
    }
    for name in list(lineup.METHODS):
        if name not in cheap:
            patch.delitem(lineup.METHODS, name)
    patch.setattr(completeness, "INTERVALS", (2, 4))
    patch.setattr(completeness, "POINTS", (1, 8))
    patch.setattr("apexgnn.experiments.convergence.INTERVALS", (2, 4))
    patch.setattr(completeness, "NODES", 1)
    patch.setattr(why, "GRAPHS", 1)
    patch.setattr(why, "RANKINGS", {"apex": why.RANKINGS["apex"], "random": why.RANKINGS["random"]})
    patch.setattr(why, "NAMES", {n: why.NAMES[n] for n in ("apex", "random", "removal")})
    patch.setattr(timing, "GRAPHS", 1)
    patch.setattr("apexgnn.experiments.claims.ALL", 50)
    yield
    patch.undo()


def reproduce(folder, *arguments):
    options = [
        "--runs",
        f"{folder}/runs",
        "--cells",
        f"{folder}/cells",
        "--out",
        f"{folder}/out",
        "--jobs",
        "1",
    ]
    result = CliRunner().invoke(
        app, [*arguments, "--dataset", "ba-shapes", "--quick", "--graphs", "2", *options]
    )
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("small")
def test_everything_small(tmp_path):
    said = reproduce(tmp_path, "all")
    out = tmp_path / "out"
    for name, header in WANTED.items():
        lines = (out / name).read_text().splitlines()
        assert lines[0] == header
        assert len(lines) > 1
    for name in (
        "fidelity-plus",
        "disentangle-minus",
        "completeness-float64",
        "runtime",
        "qualitative-houses",
    ):
        for ending in ("pdf", "svg", "png"):
            assert (out / "figures" / f"{name}.{ending}").stat().st_size > 1000
    provenance = json.loads((out / "provenance.json").read_text())
    trained = [json.loads(line) for line in (out / "table1.jsonl").read_text().splitlines()]
    assert [(cell["model"], cell["seed"], cell["recipe"]) for cell in trained] == [
        ("polygin", 0, "fast"),
        ("gin", 0, "fast"),
    ]
    assert "| ba-shapes | fast | PolyGIN | 547,208 | 100 | 1 |" in (out / "table1.md").read_text()
    assert {"fidelity-plus", "areas", "completeness", "why", "qualitative", "runtime", "datasets"} <= set(
        provenance
    )
    assert all({"command", "commit", "machine", "versions"} <= set(entry) for entry in provenance.values())
    assert "done in" in said
    with (out / "fidelity-plus.csv").open() as file:
        models = {row["method"]: row["model"] for row in csv.DictReader(file)}
    assert models["apex"] == "polygin"
    assert models["ig"] == "gin"
    cells = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")}
    (out / "fidelity-plus.csv").rename(tmp_path / "before.csv")
    reproduce(tmp_path, "fidelity-plus")
    assert (out / "fidelity-plus.csv").read_bytes() == (tmp_path / "before.csv").read_bytes()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")} == cells


def test_unknown_data_sets_are_named():
    result = CliRunner().invoke(app, ["all", "--dataset", "mutag"])
    assert "mutag" in str(result.exception)
    assert "mutagenicity" in str(result.exception)


def test_nothing_to_read_is_an_error(tmp_path, monkeypatch):
    monkeypatch.delenv("APEXGNN_DATA", raising=False)
    options = ["--out", str(tmp_path / "out"), "--cells", str(tmp_path / "cells"), "--data", str(tmp_path)]
    monkeypatch.setenv("APEXGNN_CACHE", str(tmp_path / "cache"))
    result = CliRunner().invoke(app, ["datasets", "--dataset", "graph-sst2", *options])
    assert "no data set" in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_the_order_of_work_puts_the_first_seed_first():
    from apexgnn.experiments.bench import Laboratory
    from apexgnn.experiments.cells import Store
    from apexgnn.experiments.programme import ORDER
    from apexgnn.experiments.subjects import Field

    benches = Laboratory(Store(Path(os.devnull)), Field(seeds=2), ORDER).benches()
    assert [bench.seed for bench in benches] == sorted(bench.seed for bench in benches)
    assert set(ORDER) == set(table1.DATASETS)
    assert benches[9].dataset == "graph-sst2"
