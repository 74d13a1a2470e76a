"""What the kept scores are worth: fidelity signed and by |φ|, robust fidelity, agreement with the ground truth.

The protocol is the paper's: correctly classified test graphs, the predicted class, nodes in descending order of the
signed score, sparsities 0.1 … 0.9, masked rows permuted within the graph, ten permutations, probabilities. All methods
meet the same graphs and the same permutations. The nodes of BA-Shapes all have the same features, which a permutation
leaves as they are; there, masked nodes get the features zero (the baseline) instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from apexgnn.experiments.cells import Store, rounded
from apexgnn.experiments.explanations import Piece, explained
from apexgnn.experiments.lineup import Method
from apexgnn.experiments.subjects import Subject
from apexgnn.metrics import Protocol, fidelity, robust_fidelity
from apexgnn.metrics.masking import selections
from apexgnn.metrics.truth import auc

ROBUST_SPARSITY, ROBUST_SAMPLES = 0.7, 50
Array = NDArray[np.float64]
Memory = dict[tuple[int, bytes], tuple[list[float], list[float]]]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What one method achieved on the graphs of one subject.

    Attributes:
        plus, minus: [G, K], the fidelities.
        seconds: [G], of processor time per explanation.
        ids: [G], the graphs.
    """

    plus: Array
    minus: Array
    seconds: Array
    ids: tuple[int, ...]


def protocol_of(dataset: str, *, ranking: str = "signed") -> Protocol:
    """The paper's protocol, with baseline masking where all rows are the same.

    >>> str(protocol_of("bbbp").masking), str(protocol_of("ba-shapes").masking)
    ('permutation', 'baseline')
    """
    return Protocol(masking="baseline" if dataset == "ba-shapes" else "permutation", ranking=ranking)


def stated(protocol: Protocol) -> dict[str, Any]:
    """A protocol as JSON."""
    values = {name: getattr(protocol, name) for name in protocol.__dataclass_fields__}
    values["sparsities"] = list(protocol.sparsities)
    return {
        name: value if isinstance(value, list | int | float) else str(value) for name, value in values.items()
    }


def measure(
    store: Store,
    subject: Subject,
    kind: str,
    method: Method,
    *,
    ranking: str = "signed",
    memory: Memory | None = None,
    report: Callable[[int], None] | None = None,
) -> Measured:
    """Fidelity of a method on all graphs of a subject; every graph meets the permutations of its own number.

    Args:
        memory: what is known of selections of these graphs on this model already, from other methods.
    """
    protocol = protocol_of(subject.dataset, ranking=ranking)
    memory = {} if memory is None else memory
    plus: list[Array] = []
    minus: list[Array] = []
    seconds: list[float] = []
    for piece in explained(store, subject, kind, method, report=report):
        key = {"what": "fidelity", "scores": piece.key, "protocol": stated(protocol)}
        value = store.cell(key, partial(_fidelity, subject, kind, piece, protocol, memory))
        plus.append(np.array(value["plus"]))
        minus.append(np.array(value["minus"]))
        seconds += piece.seconds
    shared = subject.shared(kind)
    return Measured(
        np.concatenate(plus)[shared], np.concatenate(minus)[shared], np.array(seconds)[shared], subject.ids
    )


def _fidelity(
    subject: Subject, kind: str, piece: Piece, protocol: Protocol, memory: Memory
) -> dict[str, list[list[float]]]:
    """Both fidelities graph by graph; methods that select the same nodes of a graph share one evaluation."""
    model, own, found = subject.models[kind].model, subject.own[kind], []
    for place, attribution in zip(range(piece.start, piece.stop), piece.attributions, strict=True):
        chosen = (place, selections(attribution.nodes, protocol).numpy().tobytes())
        if chosen not in memory:
            one = fidelity(
                model,
                [own.graphs[place]],
                scores=[attribution.nodes],
                index=None if own.index is None else [own.index[place]],
                protocol=replace(protocol, seed=own.ids[place]),
            )
            memory[chosen] = rounded(one.plus), rounded(one.minus)
        found.append(memory[chosen])
    return {"plus": [plus for plus, _ in found], "minus": [minus for _, minus in found]}


def robust(store: Store, subject: Subject, kind: str, method: Method) -> tuple[Array, Array]:
    """[G] robust Fid₊ and Fid₋ of a graph task."""
    pairs = []
    for piece in explained(store, subject, kind, method):
        key = {"what": "robust", "scores": piece.key, "sparsity": ROBUST_SPARSITY, "samples": ROBUST_SAMPLES}
        pairs.append(store.cell(key, partial(_robust, subject, kind, piece)))
    plus, minus = (np.concatenate([np.array(pair[k]) for pair in pairs]) for k in (0, 1))
    shared = subject.shared(kind)
    return plus[shared], minus[shared]


def _robust(subject: Subject, kind: str, piece: Piece) -> list[list[float]]:
    found = robust_fidelity(
        subject.models[kind].model,
        subject.own[kind].graphs[piece.start : piece.stop],
        scores=piece.attributions,
        sparsity=ROBUST_SPARSITY,
        samples=ROBUST_SAMPLES,
    )
    return [rounded(found.plus), rounded(found.minus)]


def truth_aucs(subject: Subject, scores: Sequence[Tensor]) -> Array:
    """[G], AUC of node scores against the known reason of each graph; NaN where there is none."""
    found = []
    for place, nodes in enumerate(scores):
        node = None if subject.index is None else subject.index[place]
        truth = known_reason(subject.dataset, subject.graphs[place], node)
        found.append(float("nan") if truth is None else auc(nodes, truth))
    return np.array(found)


def known_reason(dataset: str, graph: Data, node: int | None) -> Tensor | None:
    """[N] booleans: the house of a house's node; the NO2 and NH2 groups of a mutagen; None where nothing is known.

    >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> marked = torch.tensor([True, True, False, False])
    >>> nitro = Data(x=torch.ones(3, 1), edge_index=edges, edge_gt=marked, y=torch.tensor([0]))
    >>> known_reason("mutagenicity", nitro, None).tolist()
    [True, True, False]
    """
    known = dataset in ("ba-shapes", "mutagenicity") and "edge_gt" in graph
    if not known or not bool(graph.edge_gt.any()):
        return None
    ends = graph.edge_index[:, graph.edge_gt]
    inside = torch.zeros(len(graph.x), dtype=torch.bool)
    if dataset == "mutagenicity":
        if int(graph.y) != 0:
            return None
        inside[ends.flatten()] = True
        return inside
    assert node is not None
    if not bool(graph.motif[node]):
        return None
    inside[node] = True
    for _ in range(4):
        inside[ends[1, inside[ends[0]]]] = True
    return inside
