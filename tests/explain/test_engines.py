"""The fused kernel against the PathTensor engine: two implementations that share no arithmetic."""

import pytest
import torch
from torch import nn

import apexgnn
from apexgnn.explain.along_path import along_path
from apexgnn.explain.engines import by_kernel, certificate_of, fuses
from apexgnn.explain.question import ask
from apexgnn.explain.untouched import untouched
from apexgnn.nn import PolyActivation, PolyGIN
from explain.nets import batch, generic, graph, poly_gin, reference

MODELS = {
    "preset": {},
    "sum readout": {"readout": "sum"},
    "θ per channel": {"theta": "channel"},
    "ε trained": {"eps": 0.4, "train_eps": True},
    "one layer": {"num_layers": 1},
    "five layers": {"num_layers": 5, "hidden_channels": 5},
    "node task": {"task": "node"},
}
BASELINES = {"zero": None, "a row": torch.linspace(-1, 1, 5), "mean": "mean"}


def both(model, data, *, target=None, **how):
    question = ask(model, data, **how)
    assert fuses(question)
    with untouched(model):
        path = along_path(question, target, memory=2**32)
    return by_kernel(question, target, memory=2**32), path


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("weighted", [False, True])
def test_engines_agree(name, baseline, weighted):
    model = generic(PolyGIN(5, 3, **({"hidden_channels": 8} | MODELS[name])), theta=0.5).double().eval()
    data = batch()
    index = data.ptr[:-1] + 2 if model.task == "node" else None
    if weighted:
        data.edge_weight = torch.rand(data.num_edges, dtype=torch.float64)
    kernel, path = both(model, data, baseline=BASELINES[baseline], index=index)
    assert torch.equal(kernel.target, path.target)
    assert kernel.certificate == path.certificate
    size = float(path.score.abs().max() + path.baseline_score.abs().max())
    for field in ("features", "score", "baseline_score"):
        a, b = getattr(kernel, field), getattr(path, field)
        assert float((a - b).abs().max()) <= 1e-12 * (float(b.abs().max()) if field == "features" else size)


def test_kernel_is_left_alone_where_it_does_not_apply():
    data = graph()
    assert fuses(ask(poly_gin(), data))
    assert not fuses(ask(poly_gin(), data, call=lambda m, d: m(d.x, d.edge_index)))
    assert not fuses(ask(poly_gin().train(), data))
    assert not fuses(ask(poly_gin(task="node"), data))
    hooked = poly_gin()
    hooked.convs[1].register_forward_hook(lambda module, args, output: 2 * output)
    assert not fuses(ask(hooked, data))
    result = apexgnn.attribute(hooked, data)
    assert float(result.residual.abs()) <= 1e-12 * float(result.features.abs().sum())


def test_parts_in_the_place_of_others_are_carried_by_the_path():
    """A conv whose parts are of the right kinds, but not where the kernel looks for them."""
    data = graph()
    twice, forward = poly_gin(), PolyActivation.forward
    twice.convs[0].act = nn.Sequential(twice.convs[0].act, PolyActivation().double())
    assert not fuses(ask(twice, data))
    assert apexgnn.attribute(twice, data).certificate.degree == 32
    with pytest.MonkeyPatch.context() as patch:  # the class itself changed: the certificate shows it
        patch.setattr(PolyActivation, "forward", lambda self, z: z + self.theta * z**3)
        cubic = poly_gin()
        assert not fuses(ask(cubic, data))
        result = apexgnn.attribute(cubic, data, target=0)
        truth = reference(cubic, data, 0, points=41)
    assert PolyActivation.forward is forward
    assert result.certificate.degree == 81
    torch.testing.assert_close(result.features, truth, rtol=1e-8, atol=1e-11 * float(truth.abs().max()))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_a_compiled_model_is_carried_as_it_was_written():
    model, data = poly_gin(num_layers=1), graph()
    compiled = torch.compile(model, backend="eager")
    compiled(data.x, data.edge_index, torch.zeros(12, dtype=torch.long))
    result, own = apexgnn.attribute(compiled, data), apexgnn.attribute(model, data)
    torch.testing.assert_close(result.features, own.features, rtol=1e-10, atol=1e-14)


def test_certificate_of_the_kernel_is_that_of_the_models_own_code():
    model = poly_gin()
    assert certificate_of(model) == apexgnn.certify(model, graph())
    del model.convs[2]
    assert certificate_of(model) == apexgnn.certify(model, graph())
    assert certificate_of(model).degree == 8
