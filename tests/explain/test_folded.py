"""The kernel's folded weights follow the model's, however they are changed; and the kernel stays in its memory."""

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

import apexgnn
from apexgnn.explain.fused import fusable, fused_attribution
from apexgnn.nn import PolyScaleNorm
from explain.nets import graph, poly_gin, reference


def in_place(model):
    with torch.no_grad():
        model.convs[1].lin1.weight[0, 0] += 1


def through_data(model):
    model.convs[0].act.theta.data.fill_(0.9)


def data_replaced(model):
    model.convs[2].lin2.weight.data = torch.rand(8, 8).double()


def through_numpy(model):
    model.convs[2].lin2.bias.detach().numpy()[0] = 3


def loaded(model):
    model.load_state_dict(poly_gin(seed=1).state_dict())


def assigned(model):
    model.load_state_dict(poly_gin(seed=1).state_dict(), assign=True)


def one_step(model):
    optimiser = torch.optim.Adam(model.parameters(), 0.1, fused=True)
    model(graph().x, graph().edge_index).sum().backward()
    optimiser.step()


def parameter_replaced(model):
    model.head[0].bias = nn.Parameter(torch.rand(8).double())


def buffer_replaced(model):
    model.convs[1].eps = torch.tensor(0.7).double()


def single_and_back(model):
    model.float().double()


def layers_swapped(model):
    model.convs[1], model.convs[2] = model.convs[2], model.convs[1]


def layer_shared(model):
    model.convs[2] = model.convs[1]


def other_widths(model):
    model.convs[0].lin2, model.convs[1].lin1 = nn.Linear(8, 11).double(), nn.Linear(11, 8).double()


def norm_with_bias(model):
    model.convs[0].norm = PolyScaleNorm(8, bias=True).double()


def other_readout(model):
    model.readout = "sum"


CHANGES = (
    *(in_place, through_data, data_replaced, through_numpy, loaded, assigned, one_step, parameter_replaced),
    *(
        buffer_replaced,
        single_and_back,
        layers_swapped,
        layer_shared,
        other_widths,
        norm_with_bias,
        other_readout,
    ),
)


def as_the_model_has_it(model):
    """Fails if the attribution is not that of the model as it is now."""
    data = graph()
    result = apexgnn.attribute(model, data)
    truth = reference(model, data, result.target, points=12)
    torch.testing.assert_close(result.features, truth, rtol=1e-9, atol=1e-12 * float(truth.abs().max()))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_is_noticed(change):
    model = poly_gin()
    other = copy.deepcopy(model)
    as_the_model_has_it(model)
    change(model)
    assert fusable(model)
    as_the_model_has_it(model)
    as_the_model_has_it(other)


def plain_weight(model):
    """As meta-learning does it: a plain tensor in the parameter's place."""
    layer = model.convs[1].lin1
    weight = layer.weight.detach().clone()
    del layer.weight
    layer.weight = weight
    return lambda: weight.mul_(2)


def plain_eps(model):
    del model.convs[1].eps
    model.convs[1].eps = 0.3
    return lambda: setattr(model.convs[1], "eps", 0.8)


def one_scale(model):
    model.convs[0].norm.scale = nn.Parameter(torch.tensor(2.0).double())
    return lambda: None


def plain_norm_bias(model):
    model.convs[0].norm.bias = bias = torch.rand(8).double()
    return lambda: bias.mul_(2)


@pytest.mark.parametrize("change", [plain_weight, plain_eps, one_scale, plain_norm_bias])
def test_weights_of_another_kind_are_not_folded(change):
    model = poly_gin()
    then = change(model)
    assert not fusable(model)
    as_the_model_has_it(model)
    then()
    as_the_model_has_it(model)


def test_a_new_last_layer_has_its_own_columns():
    model, data = poly_gin(), graph()
    model.head[3] = nn.Linear(8, 5).double()
    assert fusable(model)
    assert int(apexgnn.attribute(model, data, target=4).target) == 4
    with pytest.raises(apexgnn.TargetError, match="0 to 4"):
        apexgnn.attribute(model, data, target=5)


def _status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the kernel tells no peak")
@pytest.mark.parametrize(
    "nodes, graphs, index, memory",
    [(9_000, 300, None, 20e6), (9_000, 1, None, 150e6), (9_000, 1, torch.arange(500), 20e6)],
    ids=["batch", "one graph", "nodes"],
)
def test_peak_memory_is_within_the_bound(nodes, graphs, index, memory):
    model = poly_gin(hidden_channels=300, dtype=torch.float32, task="graph" if index is None else "node")
    data = graph(nodes, edges=18_000, dtype=torch.float32)
    batch = torch.arange(graphs).repeat_interleave(nodes // graphs) if graphs > 1 else None
    if graphs > 1:
        data.edge_index = data.edge_index[0] // 30 * 30 + data.edge_index % 30  # within graphs of 30 nodes

    def explain(bound):
        return fused_attribution(
            model, data.x, data.edge_index, batch=batch, num_graphs=graphs, index=index, memory=int(bound)
        )

    with pytest.raises(apexgnn.MemoryBudgetError):
        explain(1e4)
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    result = explain(memory)
    held = [t for t in (result.features, result.nodes, result.owner) if t is not None]
    assert _status("VmHWM") - before <= memory + sum(t.nbytes for t in held)
