"""The benchmark measures what it says: right answers, calm samples, counted work; its files say what was measured."""

import json
import time

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from apexgnn.benchmark import Settings, engine, run, size
from apexgnn.benchmark.calm import Watch
from apexgnn.benchmark.contenders import (
    captum,
    check,
    frozen,
    gauss,
    gradient,
    in_turn,
    pyg_explainer,
    side_by_side,
)
from apexgnn.benchmark.contest import best_gradient
from apexgnn.benchmark.counting import count
from apexgnn.benchmark.footprint import in_own_process
from apexgnn.benchmark.lineup import (
    BATCHED,
    CAPTUM,
    ENGINE,
    GRADIENT,
    IN_TURN,
    OURS,
    UNCHECKED,
    WITH_PARAMETERS,
    contenders,
)
from apexgnn.benchmark.molecules import Graphs, alike, like_mutagenicity, molecule, saturated
from apexgnn.benchmark.neighbourhoods import fitted
from apexgnn.benchmark.part import Claim
from apexgnn.benchmark.report import page
from apexgnn.benchmark.speed import PARTS
from apexgnn.benchmark.timing import Times, interleaved
from apexgnn.benchmark.training import difference, pair
from apexgnn.errors import InputError, NumericalError
from apexgnn.nn import PolyGIN


def by_hand(model, graphs, target, points):
    """Gauss–Legendre by numpy's nodes, graph by graph."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    parts = []
    for g in range(graphs.number):
        mine = torch.ones(len(graphs.x), dtype=torch.bool) if graphs.batch is None else graphs.batch == g
        place = mine.cumsum(0) - 1
        edges = place[graphs.edge_index[:, mine[graphs.edge_index[0]]]]
        x, total = graphs.x[mine], 0
        for node, weight in zip(nodes, weights, strict=True):
            point = (x * (node + 1) / 2).requires_grad_()
            total += weight / 2 * torch.autograd.grad(model(point, edges)[0, target[g]], point)[0]
        parts.append(x * total)
    return torch.cat(parts)


@pytest.fixture(scope="module")
def small():
    torch.manual_seed(0)
    model = PolyGIN(14, 2, hidden_channels=8, theta_init=0.5).double().eval()
    graphs = Graphs.joined(like_mutagenicity(3, seed=1)).double()
    target = torch.tensor([0, 1, 1])
    return model, graphs, target, by_hand(model, graphs, target, 8)


def test_every_contender_that_is_checked_gives_the_same_shares(small):
    model, graphs, target, truth = small
    names = []
    for name, call in contenders(model, graphs, target):
        if not isinstance(call, str) and name not in UNCHECKED:
            names.append(name)
            assert check(call(), truth, name=name) < 1e-7, name
    assert len(names) >= 8
    assert OURS in names
    assert CAPTUM in names


def test_a_wrong_answer_is_not_timed(small):
    model, graphs, target, truth = small
    with pytest.raises(NumericalError, match="is wrong"):
        check(in_turn(model, graphs, target, gauss(1)), truth, name="too few points")
    with pytest.raises(NumericalError, match="is wrong"):
        check(truth * float("nan"), truth, name="no number")


def test_one_graph_and_many_points_at_once(small):
    model, _, _, _ = small
    graph, target = Graphs.joined(alike(1, seed=3)).double(), torch.tensor([1])
    assert graph.batch is None
    truth = by_hand(model, graph, target, 8)
    for call in (
        lambda: side_by_side(model, graph, target, gauss(8)),
        captum(model, graph, target, points=8, at_once=3),
        pyg_explainer(frozen(model), graph, target),
    ):
        assert check(call(), truth, name="one graph") < 1e-7


def test_contenders_leave_the_model_alone(small):
    model, graphs, target, _ = small
    model.train()
    try:
        pyg_explainer(frozen(model).eval(), graphs, target)()
        assert model.training
        assert all(p.requires_grad and p.grad is None for p in model.parameters())
    finally:
        model.eval()


def test_contenders_take_turns():
    order = []
    times = interleaved(
        {name: lambda name=name: (order.append(name), time.sleep(0.04)) for name in "abc"},
        seconds=0.2,
        least=2,
        most=4,
    )
    assert set(times) == set("abc")
    rounds = order[6:]  # after one call to warm up and one to plan, each
    assert len(rounds) % 3 == 0
    for k in range(0, len(rounds), 3):
        assert set(rounds[k : k + 3]) == set("abc")
    assert rounds[0] != rounds[3]
    assert all(0.035 < t.minimum <= t.median for t in times.values())


def test_slow_contenders_have_fewer_samples_and_short_ones_many_calls():
    times = interleaved(
        {"slow": lambda: time.sleep(0.12), "short": lambda: None}, seconds=0.5, least=2, most=4
    )
    assert times["slow"].calls == 1
    assert times["short"].calls > 100
    assert times["slow"].samples < times["short"].samples == 4


def test_what_others_do_is_noticed():
    import subprocess
    import sys

    watch = Watch(patience=0.0)
    if watch._everybody == 0:
        pytest.skip("the kernel does not tell who used the processors")
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.2)
        watch.restart()
        time.sleep(0.5)
        assert watch.disturbed()
        assert not watch.wait()
    finally:
        busy.kill()
        busy.wait()


def test_products_are_counted_forward_and_backward():
    layer = nn.Linear(5, 7, bias=False).requires_grad_(False)
    x = torch.rand(3, 5, requires_grad=True)
    counted = count(lambda: torch.autograd.grad(layer(x).sum(), x))
    assert counted.flops == 2 * (2 * 3 * 5 * 7)
    assert sum(counted.products.values()) == 2


def test_moved_bytes_are_counted():
    a, b = torch.rand(100, 10), torch.rand(100, 10)
    assert count(lambda: a + b).moved == 3 * 4000
    assert count(lambda: a.add_(1)).moved == 2 * 4000
    assert count(a.t).operators == 0
    index, start = torch.tensor([0, 1, 2]), torch.tensor([0, 2])
    bags = count(lambda: nn.functional.embedding_bag(index, a, start, mode="sum"))
    assert 4 * 10 * (3 + 2) <= bags.moved < 4 * 10 * (3 + 2) + 150


def test_a_gradient_of_the_preset_has_ten_products_of_full_width():
    model, graphs = frozen(PolyGIN(14, 2).eval()), Graphs.joined(alike(1, seed=0))
    counted = count(lambda: gradient(model, graphs, torch.tensor([0])))
    full = sum(n for (m, k, c, _, _), n in counted.products.items() if (m, k, c) == (30, 300, 300))
    assert full == 10


def test_made_molecules_are_simple_graphs_of_small_degree():
    for graph in like_mutagenicity(200, seed=5):
        edges = set(map(tuple, graph.edge_index.t().tolist()))
        assert len(edges) == graph.num_edges
        assert all((v, u) in edges and u != v for u, v in edges)
        assert torch.bincount(graph.edge_index[1]).max() <= 6


def test_our_loop_and_the_plain_one_have_the_same_losses_and_other_weights_do_not():
    graphs = [Data(x=g.x.double(), edge_index=g.edge_index, y=g.y) for g in saturated(96, seed=2)]
    assert difference(graphs) < 1e-13
    theirs, ours, _ = pair(graphs)
    with torch.no_grad():
        ours.optimiser.param_groups[0]["params"][0].mul_(1.01)
    theirs()
    ours()
    assert abs(theirs.losses[0] / ours.losses[0] - 1) > 1e-8
    theirs()
    assert len(theirs.losses) == 2 * 3


def test_hydrogens_hang_on_atoms_that_have_room():
    for graph in saturated(100, seed=4):
        kinds = graph.x.argmax(1)
        degree = torch.bincount(graph.edge_index[1], minlength=len(kinds))
        assert (degree <= torch.tensor([4, 2, 1, 1, 3])[kinds]).all()
        assert (degree[kinds == 3] == 1).all()


def test_memory_of_a_process_of_its_own_is_its_own():
    ballast = torch.ones(64 << 20)  # 256 MiB here must not be seen there
    found = in_own_process("one call", 20, Settings(threads=1, quick=True))
    assert ballast.nbytes > found["peak_bytes"] > 0
    assert found["worst_residual"] < 1e-5
    assert found["graphs"] == 20


def test_the_fit_tells_neighbourhood_from_graph():
    rows = [
        {"neighbourhood": n, "graph": g, "marginal": 1e-6 * n**0.9 * g**0.25}
        for n, g in ((10, 100), (100, 100), (10, 1000), (500, 10_000))
    ]
    assert fitted({"rows": rows}) == pytest.approx((0.9, 0.25))


def took(seconds):
    return {"median": seconds, "minimum": seconds, "samples": 3, "calls": 1, "disturbed": 0}


def test_every_point_is_inside_the_picture():
    slower = {"GCN": 1.0, "SAGE": 2.0, "GIN": 9.0}
    rows = [
        {"kind": kind, "blocks": 3, "graphs": 1, "times": {engine.OURS: took(t)} | others}
        for kind, t in slower.items()
        for others in [{engine.OWN_IG: took(1.0), engine.BATCHED: took(1.0)}]
    ]
    for panel, height in zip(engine.figure({"rows": rows}).axes, slower.values(), strict=True):
        low, high = panel.get_ylim()
        assert low == 0 < height < high


def test_what_a_large_graph_does_not_fit_is_left_out():
    model = PolyGIN(14, 2, hidden_channels=8).eval()

    def names(nodes):
        graph = Graphs.joined([molecule(nodes, 0, np.random.default_rng(0))])
        return set(size._calls(model, graph, torch.tensor([0])))

    assert names(50) == set(size.SHOWN)
    assert {GRADIENT, OURS, IN_TURN} <= names(20_000) <= set(size.SHOWN) - {ENGINE, BATCHED, CAPTUM}


def test_the_unit_is_the_faster_gradient():
    times = {OURS: took(3.0), GRADIENT: took(2.0), WITH_PARAMETERS: took(1.5)}
    assert best_gradient({"sizes": {"8": {"times": times}}}) == {8: 2.0}


def test_a_quick_run_writes_everything(tmp_path):
    """Parts can be run one by one; a second run keeps what is there."""
    said = []
    settings = Settings(threads=1, quick=True)
    run(["rounding"], settings=settings, folder=tmp_path, report=said.append)
    assert "wanted" not in page({"parts": {}, "machine": "", "versions": {}}, [], name="empty")
    record = run(["depth", "rounding"], settings=settings, folder=tmp_path, resume=True, report=said.append)
    assert list(record["parts"]) == ["rounding", "depth"]
    assert "rounding: measured before" in said
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"speed-quick.json", "speed-quick.md", "speed-quick-depth.png"}
    text = (tmp_path / "speed-quick.md").read_text()
    assert "Quick runs" in text
    assert "NaN" not in (tmp_path / "speed-quick.json").read_text()
    assert json.loads((tmp_path / "speed-quick.json").read_text()) == json.loads(json.dumps(record))
    assert page(record, [part for part in PARTS if part.name in record["parts"]], name="speed-quick") == text


def test_parts_that_do_not_exist_are_refused(tmp_path):
    with pytest.raises(InputError, match="part: got 'speed'; expected one of 'contest'"):
        run(["speed"], settings=Settings(quick=True), folder=tmp_path)


def test_claims_and_noise_are_shown_as_they_are():
    assert str(Claim("of a", 2.0, 1.0)) == "of a | 2 | ≤ 1 | **missed**"
    assert str(Claim("of a", 2.0, 1.0, at_most=False, unit=" MiB")) == "of a | 2 MiB | ≥ 1 MiB | met"
    assert Times(0.003, 0.0019, 3, 1, 0).ms == "~3.00 (1.90)"
    assert Times(0.002, 0.0019, 3, 1, 0).ms == "2.00 (1.90)"
