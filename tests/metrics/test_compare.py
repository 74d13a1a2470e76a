"""The comparison of explainers, and the command that prints it."""

from __future__ import annotations

import json

import pytest
import torch
from torch_geometric.data import Data
from typer.testing import CliRunner

from apexgnn import InputError, peers
from apexgnn.cli.compare import app
from apexgnn.metrics import Protocol, compare, fidelity
from apexgnn.nn import GIN, PolyGIN, save
from apexgnn.testing import random_graph

GRAPH = {
    "x": [[1.0, 0.0, 0.5], [0.0, 2.0, 1.0], [1.0, 1.0, 0.0], [0.5, 0.0, 3.0]],
    "edge_index": [[0, 1, 2], [1, 2, 3]],
}


def graphs():
    generator = torch.Generator().manual_seed(0)
    return [random_graph(nodes, features=3, generator=generator) for nodes in (5, 6, 7)]


def test_rows_are_what_each_explainer_did():
    torch.manual_seed(0)
    model = GIN(3, 2, hidden_channels=6)
    protocol = Protocol(correct_only=False)
    explainers = {name: peers.get(name) for name in ("apex", "random", "ig")}
    apex, dice, ig = compare(model, graphs(), explainers=explainers, protocol=protocol, seed=4)
    assert apex.fidelity is None
    assert apex.refusal.startswith("NotPolynomialError")
    alone = [explainers["random"].explain(model, graph, seed=4 + i) for i, graph in enumerate(graphs())]
    expected = fidelity(model, graphs(), scores=alone, protocol=protocol)
    assert torch.equal(dice.fidelity.plus, expected.plus)
    assert ig.evaluations == 50
    assert ig.residual.shape == (3,)
    assert torch.equal(dice.change, torch.cat([(a.score - a.baseline_score).abs() for a in alone]))
    assert ig.seconds > 0


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_command_on_a_json_graph(tmp_path):
    torch.manual_seed(0)
    save(PolyGIN(3, 2, hidden_channels=6), tmp_path / "model")
    (tmp_path / "graph.json").write_text(json.dumps(GRAPH))
    out = tmp_path / "table.json"
    result = run(
        tmp_path / "model", tmp_path / "graph.json", "--explainers", "apex,pgexplainer", "--out", out
    )
    assert result.exit_code == 0, result.output
    assert "PolyGIN on" in result.stdout
    assert "learned from the explained graph itself" in result.stdout
    record = json.loads(out.read_text())
    assert [row["explainer"] for row in record["rows"]] == ["apex", "pgexplainer"]
    assert record["rows"][0]["residual"][0] < 1e-5
    assert record["protocol"]["masking"] == "permutation"
    assert len(record["rows"][0]["fidelity_plus"]) == 9


def test_command_on_nodes_of_a_data_set(tmp_path):
    torch.manual_seed(0)
    save(PolyGIN(10, 4, hidden_channels=4, num_layers=2, task="node"), tmp_path / "model")
    result = run(
        tmp_path / "model",
        "ba-shapes",
        "--explainers",
        "apex,occlusion",
        "--count",
        "40",
        "--masking",
        "baseline",
    )
    assert result.exit_code == 0, result.output
    assert "40 of 70 test nodes" in result.stdout
    assert "features of masked nodes zero; nodes by signed score, ties by number" in result.stdout
    rows = [line for line in result.stdout.splitlines() if line.startswith(("apex", "occlusion"))]
    assert len(rows) == 2  # nothing wraps in 80 columns
    assert all(line.count("[") == 2 and line.count("]") == 2 for line in rows)


def test_test_nodes_are_those_that_no_training_saw(tmp_path):
    """Whatever the seed: it is not that of the split."""
    torch.manual_seed(0)
    save(PolyGIN(10, 4, hidden_channels=4, num_layers=2, task="node"), tmp_path / "model")
    options = ["--explainers", "random", "--count", "30", "--masking", "baseline"]
    records = []
    for seed in (0, 1):
        out = tmp_path / f"{seed}.json"
        assert run(tmp_path / "model", "ba-shapes", *options, "--seed", seed, "--out", out).exit_code == 0
        records.append(json.loads(out.read_text())["rows"][0])
    assert records[0]["change"] == records[1]["change"]
    assert records[0]["graphs"] == records[1]["graphs"]
    assert records[0]["residual"] != records[1]["residual"]


@pytest.mark.parametrize(
    "task, arguments, words",
    [
        ("graph", ["ba-shapes"], "a node task"),
        ("graph", ["CCO"], "SMILES for a molecule model"),
        ("graph", ["GRAPH", "--node", "1"], "no node"),
        ("node", ["GRAPH"], "a node to explain"),
        ("graph", ["GRAPH", "--explainers", "magic"], "'magic'"),
        ("graph", ["GRAPH", "--explainers", " , "], "one of apex, random"),
        ("graph", ["GRAPH", "--masking", "noise"], "'permutation', 'baseline', 'edges'"),
        ("node", ["ba-shapes", "--node", "1"], "no node"),
        ("graph", ["CCO", "--node", "1"], "no node"),
    ],
)
def test_command_refuses(tmp_path, task, arguments, words):
    save(GIN(3, 2, hidden_channels=4, task=task), tmp_path / "model")
    (tmp_path / "graph.json").write_text(json.dumps(GRAPH))
    result = run(tmp_path / "model", *(tmp_path / "graph.json" if a == "GRAPH" else a for a in arguments))
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)


def test_command_refuses_what_is_no_model():
    result = run("no-model", "CCO")
    assert isinstance(result.exception, InputError)
    assert "or one of" in str(result.exception)
    assert "mutagenicity" in str(result.exception)


def test_command_on_smiles(tmp_path):
    pytest.importorskip("rdkit")
    torch.manual_seed(0)
    save(GIN(14, 2, hidden_channels=6), tmp_path / "model")
    result = run(tmp_path / "model", "CCO", "--explainers", "apex,gradcam")
    assert result.exit_code == 0, result.output
    assert "apex refused: NotPolynomialError" in result.stdout.replace("\n", " ")


def test_command_on_a_table_and_a_model_of_the_zoo(tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "in.csv").write_text("name,smiles\nethanol,CCO\nbroken,C1CC\naniline,c1ccccc1N\n")
    result = run("mutagenicity", tmp_path / "in.csv", "--explainers", "apex,pgexplainer")
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "2 molecules of" in said
    assert "(1 rows with errors left out)" in said
    assert "learned from the explained graphs themselves" in said
    (tmp_path / "empty.csv").write_text("smiles\nC1CC\n")
    refused = run("mutagenicity", tmp_path / "empty.csv")
    assert isinstance(refused.exception, InputError)
    assert "row 1" in str(refused.exception)


def test_a_graph_with_one_node():
    data = Data(x=torch.ones(1, 3), edge_index=torch.empty(2, 0, dtype=torch.long))
    explainers = {name: peers.get(name) for name in ("occlusion", "gnnexplainer", "flowx")}
    rows = compare(
        GIN(3, 2, hidden_channels=4), [data], explainers=explainers, protocol=Protocol(correct_only=False)
    )
    assert not any(row.refusal for row in rows)
