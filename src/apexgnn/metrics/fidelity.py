"""Fidelity: how much of a prediction the selected nodes carry.

With p the model's probability of class c, S the best (1 − s)·N nodes at sparsity s, G∖S the graph with S
masked and G[S] the graph with everything else masked:

    Fidelity⁺(s) = mean over graphs of  p(G) − p(G∖S)     higher: S is necessary
    Fidelity⁻(s) = mean over graphs of  p(G) − p(G[S])    lower: S is sufficient
    characterization = (w₊ + w₋) / (w₊ / Fidelity⁺ + w₋ / (1 − Fidelity⁻))       (Amara et al., 2022)

Under permutation masking a masked node gets the features of the node that a random permutation of the graph
puts in its place, and p is averaged over the permutations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from apexgnn.attribution import Attribution
from apexgnn.errors import InputError
from apexgnn.explain.question import pyg_call
from apexgnn.explain.untouched import untouched
from apexgnn.metrics.intervals import Interval, bootstrap
from apexgnn.metrics.masking import check_class, features_of, masked_copies, selections
from apexgnn.metrics.protocol import Change, Label, Masking, Output, Protocol
from apexgnn.replicas import evaluate_copies


@dataclass(frozen=True, slots=True, eq=False)
class Fidelity:
    """Both fidelities of every graph at every sparsity, and how they were measured.

    With G graphs used and K sparsities:

    Attributes:
        plus: [G, K], p(G) − p(G∖S).
        minus: [G, K], p(G) − p(G[S]).
        probability: [G], p(G).
        label: [G], the class.
        graphs: [G], which of the given graphs these are.
        selected: [G, K], how many nodes S has.
        protocol: the choices made.
        notes: what makes the numbers degenerate, where something does.
    """

    plus: Tensor
    minus: Tensor
    probability: Tensor
    label: Tensor
    graphs: Tensor
    selected: Tensor
    protocol: Protocol
    notes: tuple[str, ...]

    @property
    def mean_plus(self) -> Tensor:
        """[K], Fidelity⁺ averaged over graphs."""
        return self.plus.mean(0)

    @property
    def mean_minus(self) -> Tensor:
        """[K], Fidelity⁻ averaged over graphs."""
        return self.minus.mean(0)

    def characterization(self, *, weight_plus: float = 0.5) -> Tensor:
        """[K], the weighted harmonic mean of Fidelity⁺ and 1 − Fidelity⁻; 0 where either is not positive."""
        necessary, sufficient = self.mean_plus, 1 - self.mean_minus
        defined = (necessary > 0) & (sufficient > 0)
        score = 1 / (weight_plus / necessary + (1 - weight_plus) / sufficient)
        return torch.where(defined, score, torch.zeros_like(score))

    def intervals(
        self, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
    ) -> tuple[Interval, Interval]:
        """Bootstrap intervals over graphs of Fidelity⁺ and Fidelity⁻, one entry per sparsity."""
        return (
            bootstrap(self.plus, level=level, resamples=resamples, seed=seed),
            bootstrap(self.minus, level=level, resamples=resamples, seed=seed),
        )


def fidelity(
    model: nn.Module,
    graphs: Sequence[Data],
    *,
    scores: Sequence[Attribution | Tensor],
    index: Sequence[int] | None = None,
    protocol: Protocol | None = None,
) -> Fidelity:
    """Fidelity⁺ and Fidelity⁻ of node scores on single graphs.

    Args:
        model: called `model(x, edge_index, batch=…)`, or `model(x, edge_index)` with `index`.
        graphs: single graphs; `y` is needed for `correct_only` and for the true label.
        scores: one per graph: an attribution or its node scores [N].
        index: for node tasks, the explained node of every graph.
        protocol: the choices; the paper's by default.

    >>> from apexgnn.nn import GIN
    >>> graph = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0]))
    >>> scores = [torch.tensor([3.0, 2.0, 1.0])]
    >>> protocol = Protocol(sparsities=(0.5,), correct_only=False)
    >>> fidelity(GIN(3, 2, hidden_channels=4), [graph], scores=scores, protocol=protocol).plus.shape
    torch.Size([1, 1])
    """
    protocol = protocol or Protocol()
    _check_lengths(graphs, scores, index)
    rows: list[tuple[Tensor, ...]] = []
    used: list[int] = []
    with untouched(model), torch.no_grad():
        model.eval()
        for position, graph in enumerate(graphs):
            node = None if index is None else int(index[position])
            score = scores[position]
            row = _one_graph(model, graph, score=score, node=node, protocol=protocol, position=position)
            if row is not None:
                rows.append(row)
                used.append(position)
    if not rows:
        raise InputError(
            "graphs",
            got=f"{len(graphs)} graphs, none of them classified correctly",
            expected="at least one that is",
            fix="pass Protocol(correct_only=False)",
        )
    plus, minus, probability, label, selected = (torch.stack(column) for column in zip(*rows, strict=True))
    notes = _notes([graphs[i] for i in used], protocol)
    return Fidelity(plus, minus, probability, label, torch.tensor(used), selected, protocol, notes)


def _one_graph(
    model: nn.Module,
    graph: Data,
    *,
    score: Attribution | Tensor,
    node: int | None,
    protocol: Protocol,
    position: int,
) -> tuple[Tensor, ...] | None:
    """One graph's row of the result, or None where the model gets the graph wrong."""
    x = features_of(graph, position)
    nodes = score.nodes if isinstance(score, Attribution) else score
    if nodes.shape != (x.size(0),):
        raise InputError(
            f"scores[{position}]",
            got=f"shape {tuple(nodes.shape)}",
            expected=f"one score for each of {x.size(0)} nodes",
        )
    evaluate = partial(
        evaluate_copies, partial(pyg_call(node_task=node is not None), model), graph, index=node
    )
    whole = evaluate(x=x.unsqueeze(0))
    label = _label(whole[0], graph, node, protocol)
    if label is None:
        return None
    if isinstance(score, Attribution):
        check_class(score, label, where=f"scores[{position}]", output=str(protocol.output))
    selected = selections(nodes.detach(), protocol)
    copies, keep = masked_copies(x, graph.edge_index, selected=selected, protocol=protocol, position=position)
    logits = evaluate(x=copies, keep=keep)
    probability = _output(whole, label, protocol)[0]
    masked = _output(logits, label, protocol).view(2, selected.size(0), -1).mean(-1)
    change = probability - masked
    if protocol.change is Change.ABSOLUTE:
        change = change.abs()
    return change[0], change[1], probability, torch.tensor(label), selected.sum(1)


def _output(logits: Tensor, label: int, protocol: Protocol) -> Tensor:
    """[R], in double precision: what is followed."""
    logits = logits.double()
    return (logits.softmax(-1) if protocol.output is Output.PROBABILITY else logits)[:, label]


def _label(logits: Tensor, graph: Data, node: int | None, protocol: Protocol) -> int | None:
    """The class to follow, or None where the prediction is wrong and only correct ones count."""
    if len(logits) == 1 and protocol.output is Output.PROBABILITY:
        raise InputError(
            "model", got="one output column", expected="one per class", fix='pass Protocol(output="raw")'
        )
    predicted = int(logits.argmax())
    if not protocol.correct_only and protocol.label is Label.PREDICTED:
        return predicted
    if graph.y is None:
        raise InputError(
            "graphs", got="a graph without y", expected="a label", fix="pass Protocol(correct_only=False)"
        )
    true = int(graph.y.flatten()[0] if node is None else graph.y[node])
    if protocol.correct_only and predicted != true:
        return None
    return true if protocol.label is Label.TRUE else predicted


def _notes(graphs: list[Data], protocol: Protocol) -> tuple[str, ...]:
    """What the reader must know to read the numbers."""
    constant = sum(bool((graph.x == graph.x[:1]).all()) for graph in graphs)
    if protocol.masking is not Masking.PERMUTATION or not constant:
        return ()
    which = "all graphs" if constant == len(graphs) else f"{constant} of {len(graphs)} graphs"
    return (
        f"{which} have equal features at every node, so permuting them changes nothing and both fidelities "
        "are zero there by construction; use baseline masking or the ground truth",
    )


def _check_lengths(graphs: Sequence[Data], scores: Sequence[object], index: Sequence[int] | None) -> None:
    if len(scores) != len(graphs) or (index is not None and len(index) != len(graphs)):
        got = f"{len(scores)} scores and {len(graphs) if index is None else len(index)} nodes"
        raise InputError("scores", got=f"{got} for {len(graphs)} graphs", expected="one of each per graph")
