"""APEX as an algorithm of PyTorch Geometric's Explainer."""

import pytest
import torch
from torch_geometric.explain import Explainer

import apexgnn
from apexgnn import InputError
from explain.nets import batch, graph, poly_gin


def explainer(
    model, *, level, mask="attributes", mode="multiclass_classification", returns="raw", **algorithm
):
    return Explainer(
        model,
        algorithm=apexgnn.APEX(**algorithm),
        explanation_type="model",
        node_mask_type=mask,
        model_config={"mode": mode, "task_level": level, "return_type": returns},
    )


def test_graph_level_batch():
    model, data = poly_gin(), batch()
    explanation = explainer(model, level="graph")(data.x, data.edge_index, batch=data.batch)
    ours = apexgnn.attribute(model, data)
    torch.testing.assert_close(explanation.node_mask, ours.features, rtol=1e-9, atol=1e-13)
    assert (explanation.node_mask < 0).any()
    assert bool((explanation.residual.abs() <= 1e-12 * ours.features.abs().sum()).all())
    assert explanation.certificate.points == 8
    assert explanation.validate()


@pytest.mark.parametrize("index", [2, torch.tensor([2])])
def test_node_level(index):
    model, data = poly_gin(task="node"), graph()
    explanation = explainer(model, level="node", mask="object")(data.x, data.edge_index, index=index)
    ours = apexgnn.attribute(model, data, index=2)
    torch.testing.assert_close(explanation.node_mask, ours.nodes.unsqueeze(1), rtol=1e-9, atol=1e-13)


def test_baseline_and_regression():
    model, data = poly_gin(classes=1), graph()
    explanation = explainer(model, level="graph", mode="regression", baseline=0.5)(data.x, data.edge_index)
    ours = apexgnn.attribute(model, data, baseline=0.5)
    torch.testing.assert_close(explanation.node_mask, ours.features, rtol=1e-9, atol=1e-13)


def test_edge_weight_passes_through():
    model, data = poly_gin(), graph()
    weight = torch.rand(30, dtype=torch.float64)
    explanation = explainer(model, level="graph")(data.x, data.edge_index, edge_weight=weight)
    data.edge_weight = weight
    torch.testing.assert_close(
        explanation.node_mask, apexgnn.attribute(model, data).features, rtol=1e-9, atol=1e-13
    )


@pytest.mark.parametrize("options", [{"returns": "probs"}, {"mask": "common_attributes"}])
def test_what_is_not_covered_is_refused(options):
    with pytest.raises(InputError):
        explainer(poly_gin(), level="graph", **options)


def test_relu_is_refused_through_the_explainer():
    from apexgnn.nn import GIN

    data = graph()
    with pytest.raises(apexgnn.NotPolynomialError):
        explainer(GIN(5, 2, hidden_channels=4).double(), level="graph")(data.x, data.edge_index)


def test_several_nodes_are_asked_for_one_by_one():
    model, data = poly_gin(task="node"), graph()
    with pytest.raises(InputError, match="one node"):
        explainer(model, level="node")(data.x, data.edge_index)


@pytest.mark.parametrize("mode", ["regression", "binary_classification"])
def test_one_column_is_expected_where_no_class_is_named(mode):
    data = graph()
    with pytest.raises(InputError, match=f"3 columns; expected one, as the mode is '{mode}'"):
        explainer(poly_gin(classes=3), level="graph", mode=mode)(data.x, data.edge_index)
