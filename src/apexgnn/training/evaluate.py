"""How good a model is: on the quotient while it trains, by its own forward pass when it is done."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from apexgnn.data import GraphDataset
from apexgnn.nn import GIN, PolyGIN
from apexgnn.training.forward import logits
from apexgnn.training.quotient import Ints, Quotient

EVALUATION_BATCH = 512


@torch.no_grad()
def evaluate(model: PolyGIN | GIN, quotient: Quotient, which: Ints) -> tuple[float, float]:
    """(Accuracy in percent, mean cross-entropy over the outputs `which`), in eval mode.

    >>> import numpy as np
    >>> from apexgnn.data import load
    >>> nodes = Quotient.of(load("ba-shapes").graphs, task="node")
    >>> percent, loss = evaluate(PolyGIN(10, 4, hidden_channels=8, task="node"), nodes, np.arange(700))
    >>> 0 <= percent <= 100, loss > 0
    (True, True)
    """
    training = model.training
    model.eval()
    right, loss = 0, 0.0
    for k in range(0, len(which), EVALUATION_BATCH):
        batch = quotient.batch(which[k : k + EVALUATION_BATCH])
        scores = logits(model, batch)
        right += int((scores.argmax(dim=1) == batch.labels).sum())
        loss += float(cross_entropy(scores, batch.labels, reduction="sum"))
    model.train(training)
    return 100 * right / len(which), loss / len(which)


@torch.no_grad()
def accuracy(model: PolyGIN | GIN, data: GraphDataset, which: Tensor) -> float:
    """Percent of the graphs (or nodes) `which` whose class the model finds, by its own forward pass.

    >>> from apexgnn.data import load
    >>> data = load("ba-shapes")
    >>> 0 <= accuracy(PolyGIN(10, 4, hidden_channels=8, task="node").eval(), data, data.split().test) <= 100
    True
    """
    if data.task == "node":
        graph = data[0]
        predicted = model(graph.x, graph.edge_index)[which].argmax(dim=1)
        return 100 * float((predicted == data.y[which]).double().mean())
    right = 0
    for chosen in torch.split(which, EVALUATION_BATCH):
        batch = data.batch(chosen)
        predicted = model(batch.x, batch.edge_index, batch.batch, batch_size=len(chosen)).argmax(dim=1)
        right += int((predicted == data.y[chosen]).sum())
    return 100 * right / len(which)
