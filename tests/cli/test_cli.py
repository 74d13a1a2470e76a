"""The command line: quick to answer, clean when it refuses, and the demonstration from end to end."""

import io
import json
import os
import subprocess
import sys

import pytest
import torch
from rich.console import Console

import apexgnn
from apexgnn import cli, zoo
from apexgnn.cli import demo_houses, houses
from apexgnn.cli.demo_houses import explainable, explanations, field, house_of
from apexgnn.errors import ApexError
from apexgnn.nn import GIN, PolyGIN, save


def run(*arguments):
    """The installed program's entry point, in a process of its own."""
    program = "from apexgnn.cli import main; main()"
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def in_process(monkeypatch, *arguments):
    """`main` here and now; the exit code."""
    monkeypatch.setattr(sys, "argv", ["apexgnn", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code or 0


def test_version_and_help_do_not_wait_for_torch():
    program = (
        "import sys\nfrom apexgnn.cli import app\n"
        "for flag in ('--help', '--version'):\n"
        "    try: app([flag])\n"
        "    except SystemExit as done: assert not done.code\n"
        "heavy = {'torch', 'torch_geometric', 'matplotlib', 'numpy', 'networkx'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"apexgnn {apexgnn.__version__}" in done.stdout
    for name in cli.COMMANDS:
        assert name in done.stdout


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_loads_and_has_help(name, monkeypatch, capsys):
    assert in_process(monkeypatch, name, "--help") == 0
    assert name in capsys.readouterr().out


def test_nothing_and_nonsense(monkeypatch, capsys):
    assert in_process(monkeypatch, "nonsense") == 2
    assert "No such command" in capsys.readouterr().err
    in_process(monkeypatch)
    assert "certify" in "".join(capsys.readouterr())


def test_certify_prints_the_table(tmp_path, monkeypatch, capsys):
    save(PolyGIN(5, 2, hidden_channels=3), tmp_path / "model")
    assert in_process(monkeypatch, "certify", tmp_path / "model") == 0
    out = capsys.readouterr().out
    assert "degree 16: 8 Gauss–Legendre points" in out
    rows = [line for line in out.splitlines() if "PolyActivation" in line]
    assert [line.split("│")[3:5] for line in rows] == [
        [f" {2**k:>2} ", f"  {2 ** (k + 1):>2} "] for k in range(4)
    ]


def test_certify_knows_the_zoo(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(zoo, "SHELF", tmp_path)
    save(PolyGIN(5, 2, hidden_channels=3), tmp_path / "bbbp")
    assert in_process(monkeypatch, "certify", "bbbp") == 0
    assert "degree 16: 8 Gauss–Legendre points" in capsys.readouterr().out


@pytest.mark.parametrize("task", ["graph", "node"])
def test_certify_takes_a_graph(task, tmp_path, monkeypatch, capsys):
    save(PolyGIN(2, 2, hidden_channels=3, num_layers=1, task=task).double(), tmp_path / "model")
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps({"x": [[1, 0], [0, 1]], "edge_index": [[0], [1]]}))
    assert in_process(monkeypatch, "certify", tmp_path / "model", "--input", graph) == 0
    assert "degree 4: 2 Gauss" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content, word",
    [
        ("{", "JSON"),
        ('{"x": [[1, 2]]}', "edge_index"),
        ('{"x": [[1, 2], [3]], "edge_index": [[], []]}', "x"),
        ('{"x": [[1, 2, 3]], "edge_index": [[], []]}', "3 features"),
        ('{"x": [[1, NaN]], "edge_index": [[], []]}', "NaN"),
        ('{"x": [[1, 2]], "edge_index": [[0], [7]]}', "7"),
        ("[" * 50_000, "RecursionError"),
    ],
)
def test_certify_refuses_a_bad_graph_in_words(content, word, tmp_path, monkeypatch, capsys):
    save(PolyGIN(2, 2, hidden_channels=3), tmp_path / "model")
    (tmp_path / "graph.json").write_text(content)
    assert in_process(monkeypatch, "certify", tmp_path / "model", "--input", tmp_path / "graph.json") == 2
    assert word in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["certify", "nowhere"], "no such folder"),
        (["certify", "gin"], "relu"),
        (["demo", "--out", "taken/x"], "--out"),
    ],
)
def test_every_refusal_is_one_message(arguments, word, tmp_path, monkeypatch, capsys):
    save(GIN(2, 2, hidden_channels=3), tmp_path / "gin")
    (tmp_path / "taken").write_text("a file")
    monkeypatch.chdir(tmp_path)
    assert in_process(monkeypatch, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert word in err
    assert len(err.splitlines()) == 1


def test_no_traceback_reaches_the_terminal(tmp_path):
    done = run("certify", tmp_path / "nowhere")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1


def test_an_error_that_is_ours_to_fix_keeps_its_traceback(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_brackets_in_an_error_are_text(monkeypatch, capsys):
    def refusing():
        raise ApexError("got [red]x[/red] and [N, F]")

    monkeypatch.setattr(cli, "app", refusing)
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().err == "error: got [red]x[/red] and [N, F]\n"


@pytest.fixture(scope="module")
def found():
    """A model that is only half trained, which is enough to be explained."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield houses.train(0, epochs=150)
    torch.set_num_threads(threads)


def test_training_is_seeded_and_leaves_the_random_state_alone(found):
    before = torch.random.get_rng_state()
    first, second = houses.train(1, epochs=3), houses.train(1, epochs=3)
    assert torch.equal(before, torch.random.get_rng_state())
    for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.model.head[3].weight, houses.train(2, epochs=3).model.head[3].weight)


def test_explained_nodes_are_right_unseen_and_in_their_house(found):
    nodes = explainable(found)
    assert nodes
    predicted = found.model(found.data.x, found.data.edge_index).argmax(dim=1)
    for node in nodes:
        assert node in found.split.test
        assert predicted[node] == found.data.y[node] > 0
        assert sorted(found.data.y[sorted(house_of(node))].tolist()) == [1, 1, 2, 2, 3]


def test_outside_its_field_a_node_gets_nothing_and_inside_is_everything(found):
    node = explainable(found)[0]
    seen = field(found, node).nodes
    result = apexgnn.attribute(found.model, found.data, index=node)
    outside = torch.ones(found.data.num_nodes, dtype=torch.bool)
    outside[seen] = False
    assert not result.nodes[outside].any()
    assert abs(result.residual.item()) < 1e-12


def test_the_picture_holds_the_whole_field_for_two_roles(found):
    node = explainable(found)[0]
    figure = demo_houses.draw(found, node)
    assert f"node {node}" in figure.texts[0].get_text()
    count = len(field(found, node).nodes)
    assert [len(axes.texts) for axes in figure.axes[:2]] == [count, count]


def test_tables_of_the_demonstration(found):
    nodes = explainable(found)[:1]
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(explanations(found, nodes))
    console.print(demo_houses.errors(found, nodes))
    lines = console.export_text().splitlines()
    cells = {
        line.split("│")[1].strip(): [c.strip() for c in line.split("│")[2:-1]]
        for line in lines
        if "│" in line
    }
    for rule in demo_houses.STEPS_BESIDE_BUDGET:
        errors = [float(cell) for cell in cells[rule]]
        assert errors == sorted(errors, reverse=True) or rule == "gauss-legendre"
    assert float(cells["gauss-legendre"][2]) < 1e-12 < float(cells["midpoint"][4])
    assert cells["exact"][:2] == ["", ""]
    assert float(cells["exact"][2]) < 1e-12
