"""`apexgnn train` and `apexgnn reproduce table1`, with a recipe of two epochs."""

import csv
import json
import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from apexgnn.cli import reproduce, train
from apexgnn.errors import InputError, MissingDependencyError
from apexgnn.experiments import table1
from apexgnn.nn import load, read_checkpoint
from apexgnn.training import Recipe

SHORT = Recipe("fast", 2, 1e-5, prepared=True, clip=1.0)


def test_train_leaves_a_model_with_its_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(train, "recipe", lambda name, **_: SHORT)
    out = tmp_path / "model"
    result = CliRunner().invoke(train.app, ["ba-shapes", "--seed", "3", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "ba-shapes, polygin, seed 3: test" in result.output.replace("\n", " ")
    outcome = read_checkpoint(out).metadata["outcome"]
    assert (outcome["seed"], outcome["epochs"], outcome["parameters"]) == (3, 2, 547208)
    assert not load(out).training
    assert len((out / "metrics.csv").read_text().splitlines()) == 3


def test_an_unknown_recipe_is_named(tmp_path):
    result = CliRunner().invoke(train.app, ["bbbp", "--recipe", "slow", "--out", str(tmp_path / "model")])
    assert isinstance(result.exception, InputError)
    assert "'paper', 'fast'" in str(result.exception)


@pytest.mark.parametrize("dataset", ["esol", "lipo"])
def test_regressions_are_refused_in_words(tmp_path, dataset):
    result = CliRunner().invoke(train.app, [dataset, "--out", str(tmp_path / "model")])
    assert isinstance(result.exception, InputError)
    assert "(classification)" in str(result.exception)
    assert not (tmp_path / "model").exists()


def test_tensorboard_gets_every_number_or_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    arguments = ["ba-shapes", "--out", str(tmp_path / "model"), "--tensorboard"]
    refused = CliRunner().invoke(train.app, arguments).exception
    assert isinstance(refused, MissingDependencyError)
    assert "pip install tensorboard" in str(refused)

    written = []
    writer = SimpleNamespace(add_scalar=lambda *what: written.append(what), flush=lambda: None)
    stand_in = SimpleNamespace(SummaryWriter=lambda folder: writer)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", stand_in)
    monkeypatch.setattr(train, "recipe", lambda name, **_: SHORT)
    assert CliRunner().invoke(train.app, arguments).exit_code == 0
    rows = list(csv.DictReader((tmp_path / "model" / "metrics.csv").read_text().splitlines()))
    assert written == [
        (name, float(row[name]), int(row["epoch"]))
        for row in rows
        for name in ("train_loss", "validation_loss", "validation_accuracy", "learning_rate")
    ]


@pytest.mark.parametrize("model", ["gin", "polygin"])
def test_reproduce_appends_cells_and_writes_the_table(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(table1, "SOURCE", {})
    monkeypatch.setattr(table1, "recipe", lambda name, **_: SHORT)
    arguments = ["table1", "--seeds", "1", "--dataset", "ba-shapes", "--model", model, "--out", "found"]
    result = CliRunner().invoke(reproduce.app, arguments)
    assert result.exit_code == 0, result.output
    cells = [json.loads(line) for line in (tmp_path / "found" / "table1.jsonl").read_text().splitlines()]
    assert [(cell["dataset"], cell["model"], cell["seed"]) for cell in cells] == [("ba-shapes", model, 0)]
    assert "| ba-shapes | fast |" in (tmp_path / "found" / "table1.md").read_text()
