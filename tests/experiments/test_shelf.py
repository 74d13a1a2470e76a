"""The shelf is filled with the chosen weights, which say of themselves what they reach; gone ones are trained again."""

import json

import pytest
from typer.testing import CliRunner

from apexgnn.cli import reproduce
from apexgnn.experiments import shelf, table1
from apexgnn.nn import load, read_checkpoint
from apexgnn.training import Recipe
from apexgnn.training.evaluate import accuracy
from apexgnn.training.run import Workload

SHORT = Recipe("fast", 2, 1e-5, prepared=True, clip=1.0)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Two seeds of two epochs on BA-Shapes, and the better of them on a shelf."""
    folder, told = tmp_path_factory.mktemp("shelf"), []
    results, runs = folder / "table1.jsonl", folder / "runs"
    with pytest.MonkeyPatch.context() as patch:
        for module in (table1, shelf):
            patch.setattr(module, "SOURCE", {})
            patch.setattr(module, "recipe", lambda name, **_: SHORT)
        table1.reproduce(
            results, datasets=["ba-shapes"], models=["polygin"], seeds=range(2), runs=runs, report=told.append
        )
        assert shelf.fill(results, runs, shelf=folder / "shelf", report=told.append) == ["ba-shapes"]
        yield folder, table1.read_cells(results), told


def test_the_best_seed_ships_with_its_numbers(filled):
    folder, cells, told = filled
    best = max(cells, key=lambda cell: (cell["validation_accuracy"], -cell["seed"]))
    about, card = (
        read_checkpoint(folder / "shelf" / "ba-shapes"),
        (folder / "shelf" / "ba-shapes" / "card.md").read_text(),
    )
    assert about.metadata["outcome"] == best
    assert f"{best['test_accuracy']:.2f} %" in card
    assert "average" not in about.metadata
    work = Workload.of("ba-shapes")
    model = load(folder / "shelf" / "ba-shapes")
    assert accuracy(model, work.data, work.split.test) == best["test_accuracy"]
    assert sum("no PolyGIN" in line for line in told) == 4


def test_a_model_that_is_gone_is_trained_again_to_the_same_weights(filled):
    folder, _, _ = filled
    before = read_checkpoint(folder / "shelf" / "ba-shapes").sha256
    arguments = [
        "zoo",
        "--dataset",
        "ba-shapes",
        "--results",
        folder / "table1.jsonl",
        "--runs",
        folder / "again",
    ]
    done = CliRunner().invoke(reproduce.app, [*map(str, arguments), "--out", str(folder / "other")])
    assert done.exit_code == 0, done.output
    assert read_checkpoint(folder / "other" / "ba-shapes").sha256 == before


def test_numbers_that_the_weights_do_not_reach_are_told(filled):
    folder, cells, _ = filled
    forged = [cell | {"validation_accuracy": 99.0} for cell in cells]
    (folder / "forged.jsonl").write_text("".join(json.dumps(cell) + "\n" for cell in forged))
    told = []
    shelf.fill(
        folder / "forged.jsonl",
        folder / "runs",
        datasets=["ba-shapes"],
        shelf=folder / "s",
        report=told.append,
    )
    assert "forged.jsonl has 99.00 %" in told[0]
    assert read_checkpoint(folder / "s" / "ba-shapes").metadata["outcome"] == cells[0]


def test_a_later_cell_replaces_an_earlier_one_of_its_seed():
    cell = {"dataset": "bbbp", "model": "polygin", "recipe": "fast"}
    rows = [cell | {"seed": s, "validation_accuracy": v} for s, v in ((0, 95.0), (1, 91.0), (0, 90.0))]
    assert shelf.best_cell(rows, "bbbp") == rows[1]
