"""The fused kernel against a dense network in plain autograd with 64 points, and its own symmetries."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apexgnn.explain.fused import fused_attribution, pieces
from apexgnn.nn import PolyGIN, PolyScaleNorm
from explain.dense import shares

WHOLE, BLOCKS = pieces.CACHE, 1  # everything in one block, or sixteen rows at a time


def network(seed, *, theta=0.5, norm_bias=False, **options):
    """Weights of order one, biases too, so that no coefficient is small by accident."""
    model = PolyGIN(**options).double().eval()
    source = torch.Generator().manual_seed(seed)

    def draw(parameter):
        return torch.randn(parameter.shape, generator=source, dtype=torch.float64)

    with torch.no_grad():
        for conv in model.convs if norm_bias else ():
            conv.norm = PolyScaleNorm(options["hidden_channels"], bias=True).double()
        for name, parameter in model.named_parameters():
            if name.endswith("theta"):
                parameter.copy_(theta * (1 + 0.3 * draw(parameter)))
            elif name.endswith(("scale", "eps")):
                parameter.copy_(0.6 + 0.1 * draw(parameter))
            else:
                parameter.copy_(draw(parameter) / parameter.size(-1) ** 0.5)
    return model.eval()


def random_graph(source, nodes, width, edges):
    """Any edges: one way, twice, to the node itself; and nodes without any."""
    x = torch.randn(nodes, width, generator=source, dtype=torch.float64)
    return x, torch.randint(nodes, (2, edges), generator=source)


@st.composite
def questions(draw):
    """A model, the graphs of a batch with their weights, and a baseline for each."""
    width, layers = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    model = network(
        draw(st.integers(0, 999)),
        theta=draw(st.sampled_from([0.5, -0.2, 0.0, 1e-9])),
        norm_bias=draw(st.booleans()),
        in_channels=width,
        out_channels=draw(st.integers(1, 3)),
        hidden_channels=draw(st.integers(1, 9)),
        num_layers=layers,
        readout=draw(st.sampled_from(["mean", "sum"])),
        theta_init=0.5,
    )
    if draw(st.booleans()):
        for conv in model.convs:
            del conv.eps
            conv.register_buffer("eps", torch.tensor(draw(st.sampled_from([0.0, 0.3, -1.0]))).double())
    source = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    if draw(st.booleans()):
        theta = torch.rand(model.config["hidden_channels"], generator=source).double()
        model.convs[0].act.theta = torch.nn.Parameter(theta)
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    graphs = [random_graph(source, n, width, draw(st.integers(0, 8))) for n in sizes]
    weighted = draw(st.booleans())
    weights = [torch.rand(e.size(1), generator=source).double() if weighted else None for _, e in graphs]
    kind = draw(st.sampled_from(["none", "zero", "random"]))
    baselines = [
        None if kind == "none" else (kind == "random") * torch.randn(x.shape, generator=source).double()
        for x, _ in graphs
    ]
    return model, graphs, weights, baselines


def together(graphs, weights, baselines):
    """The graphs as one batch."""
    sizes = torch.tensor([len(x) for x, _ in graphs])
    shift = sizes.cumsum(0) - sizes
    return {
        "x": torch.cat([x for x, _ in graphs]),
        "edge_index": torch.cat([e + s for (_, e), s in zip(graphs, shift, strict=True)], dim=1),
        "batch": torch.arange(len(graphs)).repeat_interleave(sizes),
        "num_graphs": len(graphs),
        "edge_weight": None if weights[0] is None else torch.cat(weights),
        "baseline": None if baselines[0] is None else torch.cat(baselines),
    }


def same(got, wanted, *, tolerance=1e-12):
    return float((got - wanted).abs().max()) <= tolerance * float(wanted.abs().max())


@pytest.mark.parametrize("cache", [WHOLE, BLOCKS])
@settings(max_examples=60, deadline=None)
@given(question=questions())
def test_equals_64_points_of_plain_autograd(cache, question):
    model, graphs, weights, baselines = question
    batch = together(graphs, weights, baselines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "CACHE", cache)
        result = fused_attribution(model, **batch)
    for g, ((x, edges), weight, baseline) in enumerate(zip(graphs, weights, baselines, strict=True)):
        column = int(result.target[g])
        phi, _, ends, largest = shares(model, x, edges, weight=weight, baseline=baseline, target=column)
        size = 1e-12 * max(float(phi.abs().max()), largest)
        assert float((result.features[batch["batch"] == g] - phi).abs().max()) <= size
        assert float(result.score[g]) == pytest.approx(ends[0], abs=size, rel=0)
        assert float(result.baseline_score[g]) == pytest.approx(ends[1], abs=size, rel=0)


@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("width", [2, 30])
def test_one_large_graph_in_blocks(layers, width, monkeypatch):
    monkeypatch.setattr(pieces, "CACHE", BLOCKS)
    model = network(3, in_channels=width, out_channels=2, hidden_channels=6, num_layers=layers, theta=0.3)
    x, edges = random_graph(torch.Generator().manual_seed(1), 77, width, 150)
    result = fused_attribution(model, x, edges)
    phi, target, _, _ = shares(model, x, edges, points=2**layers)
    assert same(result.features, phi)
    assert int(result.target) == target


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("baseline", [None, 0.7])
@pytest.mark.parametrize("cache", [WHOLE, BLOCKS])
def test_node_task(layers, baseline, cache, monkeypatch):
    monkeypatch.setattr(pieces, "CACHE", cache)
    model = network(
        4, in_channels=3, out_channels=3, hidden_channels=5, num_layers=layers, task="node", train_eps=True
    )
    source = torch.Generator().manual_seed(2)
    x, edges = random_graph(source, 40, 3, 70)
    weight = torch.rand(70, generator=source).double()
    start = None if baseline is None else torch.full_like(x, baseline)
    index = torch.tensor([5, 5, 39, 0, *range(8, 30)])
    result = fused_attribution(model, x, edges, index=index, baseline=start, edge_weight=weight)
    for g, node in enumerate(index.tolist()):
        phi, target, (end, begin), _ = shares(model, x, edges, weight=weight, baseline=start, index=node)
        mine = torch.zeros_like(x)
        mine[result.nodes[result.owner == g]] = result.features[result.owner == g]
        assert same(mine, phi)
        assert (int(result.target[g]), float(result.score[g])) == (target, pytest.approx(end, rel=1e-12))
        assert float(result.baseline_score[g]) == pytest.approx(begin, rel=1e-12)
    one = fused_attribution(model, x, edges, index=5, baseline=start, edge_weight=weight)
    phi, _, _, _ = shares(model, x, edges, weight=weight, baseline=start, index=5)
    assert one.features.shape == x.shape
    assert same(one.features, phi)


def preset(dtype=torch.float32, **options):
    torch.manual_seed(0)
    return PolyGIN(14, 2, **options).to(dtype).eval()


def molecules(count, *, dtype=torch.float32, nodes=30, seed=0):
    source = torch.Generator().manual_seed(seed)
    graphs = []
    for _ in range(count):
        kind = torch.randint(14, (nodes,), generator=source)
        x = torch.nn.functional.one_hot(kind, 14).to(dtype)
        half = torch.randint(nodes, (2, 32), generator=source)
        graphs.append((x, torch.cat([half, half.flip(0)], dim=1)))
    return together(graphs, [None] * count, [None] * count)


def test_batch_is_one_by_one_and_order_does_not_matter():
    model, batch = preset(torch.float64), molecules(40, dtype=torch.float64)
    result = fused_attribution(model, **batch)
    for g in (0, 17, 39):
        rows = batch["batch"] == g
        low = int(rows.nonzero()[0])
        edges = batch["edge_index"][:, batch["batch"][batch["edge_index"][0]] == g] - low
        alone = fused_attribution(model, batch["x"][rows], edges)
        assert same(result.features[rows], alone.features)
        assert same(result.score[g], alone.score)
    order = torch.randperm(len(batch["x"]), generator=torch.Generator().manual_seed(1))
    place = order.argsort()
    shuffled = batch | {
        "x": batch["x"][order],
        "batch": batch["batch"][order],
        "edge_index": place[batch["edge_index"]],
    }
    moved = fused_attribution(model, **shuffled)
    assert same(moved.features, result.features[order])
    assert same(moved.score, result.score)


def test_ends_of_the_path_are_the_models_own_scores():
    model, batch = preset(), molecules(20)
    result = fused_attribution(model, **batch)
    with torch.no_grad():
        logits = model(batch["x"], batch["edge_index"], batch["batch"])
        zero = model(torch.zeros_like(batch["x"]), batch["edge_index"], batch["batch"])
    assert torch.equal(result.target, logits.argmax(dim=1))
    column = result.target[:, None]
    assert same(result.score, logits.gather(1, column)[:, 0], tolerance=3e-6)
    assert same(result.baseline_score, zero.gather(1, column)[:, 0], tolerance=3e-6)


@pytest.mark.parametrize("baseline", [None, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_float32_error_against_8_points_in_float32(baseline, seed):
    torch.manual_seed(seed)
    model = PolyGIN(14, 2).eval()
    exact = PolyGIN(14, 2).double().eval()
    exact.load_state_dict(model.state_dict())
    batch = molecules(1, seed=seed)
    x, edges = batch["x"], batch["edge_index"]
    start = None if baseline is None else torch.full_like(x, baseline)
    truth, target, _, _ = shares(
        exact, x.double(), edges, baseline=None if start is None else start.double(), points=8
    )
    plain, _, _, _ = shares(model, x, edges, baseline=start, target=target, points=8)
    fused = fused_attribution(model, x, edges, baseline=start, target=torch.tensor([target])).features
    error, allowed = (fused.double() - truth).norm(), (plain.double() - truth).norm()
    assert error <= 4 * allowed


def test_results_can_be_used_in_autograd():
    result = fused_attribution(preset(), **molecules(2))
    weight = torch.ones(2, requires_grad=True)
    (weight * result.score).sum().backward()
    assert torch.equal(weight.grad, result.score)
    assert not result.features.is_inference()
