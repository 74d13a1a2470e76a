"""Two ways to the same shares: the fused kernel for a PolyGIN, a PathTensor through the model for everything else.

The kernel's certificate is that of the model's own code: it is taken from a pass of a PathTensor over one node,
once for each number of layers that a model is seen with.
"""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data

from apexgnn.attribution import Certificate
from apexgnn.explain.along_path import along_path
from apexgnn.explain.certify import at_the_end
from apexgnn.explain.fused import FusedResult, fusable, fused_attribution
from apexgnn.explain.question import Question, Target, ask, check_target
from apexgnn.explain.remembered import Remembered
from apexgnn.explain.shares import Shares
from apexgnn.explain.untouched import untouched
from apexgnn.nn.models import PolyGIN

_CERTIFICATES = Remembered[dict[int, Certificate]]()


def exact_shares(question: Question, target: Target, *, memory: int) -> Shares:
    """The shares by the faster engine that covers the model."""
    if fuses(question):
        return by_kernel(question, target, memory=memory)
    with untouched(question.model):
        return along_path(question, target, memory=memory)


def fuses(question: Question) -> bool:
    """Whether the fused kernel computes what this question asks."""
    model = question.model
    return (
        not question.own_call
        and isinstance(model, PolyGIN)
        and (model.task == "node") == (question.index is not None)
        and fusable(model)
        and certificate_of(model).degree == 2 ** (len(model.convs) + 1)
    )


def by_kernel(question: Question, target: Target, *, memory: int) -> Shares:
    """The shares by the fused kernel."""
    model, index = question.model, question.index
    assert isinstance(model, PolyGIN)
    last: Any = model.head[3]
    columns = len(last.weight)
    result = fused_attribution(
        model,
        question.x,
        question.data.edge_index,
        batch=question.owner if question.graphs > 1 else None,
        num_graphs=question.graphs,
        baseline=question.baseline,
        target=None if target is None else check_target(target, question.graphs, columns),
        index=index,
        edge_weight=question.data.edge_weight,
        memory=memory,
    )
    return Shares(
        features=result.features if index is None else _on_all_nodes(result, question),
        target=result.target,
        score=result.score,
        baseline_score=result.baseline_score,
        certificate=certificate_of(model),
    )


def _on_all_nodes(result: FusedResult, question: Question) -> torch.Tensor:
    features = torch.zeros_like(question.x)
    features[result.nodes] = result.features
    return features


def certificate_of(model: PolyGIN) -> Certificate:
    """The certificate of a fusable PolyGIN."""
    known = _CERTIFICATES.get(model) or {}
    layers = len(model.convs)
    if layers not in known:
        x = next(model.parameters()).new_zeros(1, model.config["in_channels"])
        node = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long))
        question = ask(model, node, index=0 if model.task == "node" else None)
        with untouched(model):
            known |= {layers: at_the_end(question).certificate}
        _CERTIFICATES.put(model, known)
    return known[layers]
