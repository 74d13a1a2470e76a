"""Every explainer of the registry, on GIN and PolyGIN, for graphs and for nodes, is held to the contract."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from torch_geometric.nn import GCN

from apexgnn import NotPolynomialError, peers
from apexgnn.nn import GIN, PolyGIN
from apexgnn.peers.case import Case, Scores
from apexgnn.peers.explainer import Claims, Explainer
from apexgnn.testing import ContractError, check_explainer, random_graph

QUICK = {
    "ig": {"steps": 6},
    "captum_ig": {"steps": 6},
    "gnnexplainer": {"epochs": 4},
    "pgexplainer": {"epochs": 2},
    "flowx": {"samples": 2},
    "flowx_plus": {"samples": 2, "epochs": 3},
    "flowx_minus": {"samples": 2, "epochs": 3},
    "subgraphx": {"rollouts": 2, "min_atoms": 3, "shapley_samples": 4},
}


def graphs():
    generator = torch.Generator().manual_seed(7)
    return [random_graph(nodes, features=3, generator=generator) for nodes in (5, 4, 6)]


@pytest.mark.parametrize("task", ["graph", "node"])
@pytest.mark.parametrize("network", [GIN, PolyGIN])
@pytest.mark.parametrize("name", peers.names())
def test_contract(name, network, task):
    torch.manual_seed(1)
    model = network(3, 2, hidden_channels=6, num_layers=2, task=task)
    explainer, data = peers.get(name, **QUICK.get(name, {})), graphs()
    index = 2 if task == "node" else None
    if name == "apex" and network is GIN:
        with pytest.raises(NotPolynomialError):
            explainer.explain(model, data[0], index=index)
        return
    explainer = explainer.fit(model, data, index=None if index is None else [2, 2, 2])
    clauses = check_explainer(explainer, model, graphs=data, index=index)
    assert {"result", "score", "determinism", "precision", "batch", "edges", "refusal", "untouched"} <= set(
        clauses
    )


@pytest.mark.parametrize("name", peers.names())
def test_contract_on_residual_layers(name):
    torch.manual_seed(3)
    model = PolyGIN(3, 2, hidden_channels=6, num_layers=2, residual=True)
    explainer, data = peers.get(name, **QUICK.get(name, {})), graphs()
    check_explainer(explainer.fit(model, data), model, graphs=data)


@pytest.mark.parametrize("name", [name for name in peers.names() if name != "apex"])
def test_contract_on_a_model_of_pyg(name):
    torch.manual_seed(2)
    model = GCN(3, 6, num_layers=2, out_channels=2)
    explainer, data = peers.get(name, **QUICK.get(name, {})), graphs()
    explainer = explainer.fit(model, data, index=[1, 1, 1])
    check_explainer(explainer, model, graphs=data, index=1)


DICE = torch.Generator()


@dataclass(frozen=True, kw_only=True)
class Cheat(Explainer):
    """A signed, random, incomplete explainer that claims the opposite."""

    name: ClassVar[str] = "cheat"
    claims: ClassVar[Claims] = Claims()
    fault: str = ""

    def _scores(self, case: Case) -> Scores:
        x = case.question.x
        if self.fault == "state":
            return Scores(nodes=torch.rand(len(x), generator=DICE))
        if self.fault == "order":
            return Scores(nodes=torch.arange(float(len(x))))
        return Scores(nodes=x.sum(1))


@pytest.mark.parametrize(
    "fault, claims, clause",
    [
        ("state", Claims(), "determinism"),
        ("order", Claims(), "equivariance"),
        ("", Claims(signed=False), "sign"),
        ("", Claims(complete=True), "completeness"),
        ("", Claims(linear=True), "linearity"),
    ],
)
def test_the_contract_catches(fault, claims, clause):
    torch.manual_seed(0)
    model = GIN(3, 2, hidden_channels=4, num_layers=2)
    with pytest.raises(ContractError, match=clause):
        check_explainer(Cheat(fault=fault), model, graphs=graphs(), claims=claims)


class Liar:
    """Explains well, and reports something else."""

    def __init__(self, lie):
        self.lie = lie

    def explain(self, model, data, *, target=None, index=None, seed=0):
        clean = data.clone()
        clean.x = data.x.nan_to_num()
        honest = peers.get("saliency").explain(
            model, clean if self.lie is None else data, target=target, index=index
        )
        return honest if self.lie is None else replace(honest, **self.lie(honest, data))


def constant(result, data):
    """One more for every node, with a residual that knows."""
    size = data.num_nodes if data.batch is None else data.batch.bincount()
    return {"nodes": result.nodes + 1, "features": None, "residual": result.residual + size}


@pytest.mark.parametrize(
    "lie, clause",
    [
        (lambda a, d: {"nodes": a.nodes[1:]}, "result: one score per node"),
        (lambda a, d: {"exact": True}, "result: exact only with a certificate"),
        (lambda a, d: {"nodes": a.nodes / 0}, "result: finite values"),
        (lambda a, d: {"score": a.score + 1}, "score: the model's own output"),
        (lambda a, d: {"target": 0 * a.target}, "score: target=None explains column 1"),
        (lambda a, d: {"residual": a.residual + 1}, "score: residual is"),
        (lambda a, d: {"nodes": a.nodes + 1}, "score: nodes are features summed"),
        (lambda a, d: {"edges": torch.zeros(d.num_edges).double()}, "precision: torch.float32"),
        (lambda a, d: {"nodes": a.nodes + (d.batch is not None)}, "batch: nodes as one by one"),
        (lambda a, d: {"nodes": a.nodes + (0 if d.num_edges else torch.nan)}, "edges"),
        (constant, "dummy"),
        (None, "refusal: NaN"),
    ],
)
def test_the_contract_notices_lies(lie, clause):
    torch.manual_seed(0)
    model = GIN(3, 2, hidden_channels=4, num_layers=2, task="node")
    with pytest.raises(ContractError, match=clause):
        check_explainer(Liar(lie), model, graphs=graphs(), index=1, claims=Claims(signed=False, dummy=True))


class Vandal:
    """Explains well, and leaves a trace."""

    def __init__(self, damage):
        self.damage = damage

    def explain(self, model, data, *, target=None, index=None, seed=0):
        result = peers.get("saliency").explain(model, data, target=target, index=index)
        self.damage(model, data)
        return result


@pytest.mark.parametrize(
    "damage",
    [
        lambda model, data: model.eval(),
        lambda model, data: model.head[0].weight.data.mul_(1.001),
        lambda model, data: model.zero_grad(),
        lambda model, data: model.requires_grad_(True),
        lambda model, data: model.head.register_forward_hook(lambda *_: None),
        lambda model, data: setattr(model, "mask", 1),
        lambda model, data: setattr(model.head[2], "p", 0.9),
        lambda model, data: setattr(model, "answer", data.x),
        lambda model, data: torch.rand(1),
        lambda model, data: data.x.requires_grad_(),
        lambda model, data: setattr(data, "mask", data.x),
    ],
)
def test_the_contract_notices_traces(damage):
    torch.manual_seed(0)
    model = GIN(3, 2, hidden_channels=4, num_layers=2)
    model.answer = None
    with pytest.raises(ContractError, match=r"untouched|result"):
        check_explainer(Vandal(damage), model, graphs=graphs(), claims=Claims(signed=False))
