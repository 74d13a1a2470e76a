"""Node scores of every method on every graph, explained once and kept; everything that is measured starts here.

Graphs are explained one at a time, in pieces of 25, under a seed that is the graph's number in its data set, and the
processor time of each is kept. A method that learns is fitted when the first of its pieces is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import torch
from torch import Tensor

from apexgnn.attribution import Attribution
from apexgnn.experiments.cells import Key, Store, content, rounded
from apexgnn.experiments.lineup import Method
from apexgnn.experiments.subjects import Subject
from apexgnn.peers import Explainer

PIECE = 25


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Some graphs of a subject, and the key of what one method found there.

    Attributes:
        start, stop: which graphs.
        key: of the cell.
        attributions: as the method gave them, without features.
        seconds: of processor time, for each graph.
    """

    start: int
    stop: int
    key: Key
    attributions: tuple[Attribution, ...]
    seconds: tuple[float, ...]


def pieces(subject: Subject, kind: str) -> list[range]:
    """Where the pieces of a model's own graphs begin and end."""
    count = len(subject.own[kind].graphs)
    return [range(start, min(start + PIECE, count)) for start in range(0, count, PIECE)]


def explained(
    store: Store,
    subject: Subject,
    kind: str,
    method: Method,
    *,
    report: Callable[[int], None] | None = None,
) -> Iterator[Piece]:
    """What a method says of all graphs that a model gets right, from the store or computed now.

    Args:
        report: told how many graphs are done after each piece.
    """
    explainer: Explainer | None = None
    for part in pieces(subject, kind):
        key = scores_key(subject, kind, method, part)
        value = store.get(key)
        if value is None:
            explainer = explainer or ready(subject, kind, method)
            value = _explain(explainer, subject, kind, part)
            store.put(key, value)
        yield Piece(part.start, part.stop, key, _restored(value), tuple(value["seconds"]))
        if report is not None:
            report(part.stop)


def scores_key(subject: Subject, kind: str, method: Method, part: range) -> Key:
    """Everything that the scores of a piece depend on."""
    own = subject.own[kind]
    places = None if own.index is None else [own.index[i] for i in part]
    key: Key = {
        "what": "scores",
        "model": subject.models[kind].sha256,
        "data": content([own.graphs[i] for i in part], places),
        "explainer": repr(method.explainer(subject.dataset)),
        "seeds": [own.ids[i] for i in part],
    }
    if method.learns:
        key["learned"] = content(subject.learn, subject.learn_index)
        key["seed"] = subject.seed
    return key


def ready(subject: Subject, kind: str, method: Method) -> Explainer:
    """The explainer, fitted where it learns, and warm."""
    model, explainer = subject.models[kind].model, method.explainer(subject.dataset)
    if method.learns:
        explainer = explainer.fit(model, subject.learn, index=subject.learn_index, seed=subject.seed)
    if method.peer not in ("flowx", "gnnexplainer"):
        one_explained(explainer, subject, kind, 0)
    return explainer


def one_explained(explainer: Explainer, subject: Subject, kind: str, place: int) -> Attribution:
    """What an explainer says of one of a model's own graphs, under the seed that is the graph's number."""
    own = subject.own[kind]
    node = None if own.index is None else own.index[place]
    return explainer.explain(subject.models[kind].model, own.graphs[place], index=node, seed=own.ids[place])


def _explain(explainer: Explainer, subject: Subject, kind: str, part: range) -> dict[str, Any]:
    found, seconds = [], []
    for place in part:
        started = process_time()
        found.append(one_explained(explainer, subject, kind, place))
        seconds.append(round(process_time() - started, 6))
    return {
        "nodes": [rounded(a.nodes) for a in found],
        "edges": [None if a.edges is None else rounded(a.edges) for a in found],
        "target": [int(a.target) for a in found],
        "score": rounded(torch.cat([a.score for a in found])),
        "baseline_score": rounded(torch.cat([a.baseline_score for a in found])),
        "residual": rounded(torch.cat([a.residual for a in found])),
        "evaluations": [a.evaluations for a in found],
        "method": found[0].method,
        "exact": found[0].exact,
        "seconds": seconds,
    }


def _restored(value: dict[str, Any]) -> tuple[Attribution, ...]:
    return tuple(
        Attribution(
            features=None,
            nodes=torch.tensor(nodes),
            target=torch.tensor([target]),
            score=torch.tensor([score]),
            baseline_score=torch.tensor([start]),
            residual=torch.tensor([residual]),
            evaluations=evaluations,
            exact=value["exact"],
            certificate=None,
            method=value["method"],
            edges=None if edges is None else torch.tensor(edges),
        )
        for nodes, edges, target, score, start, residual, evaluations in zip(
            *(
                value[name]
                for name in (
                    "nodes",
                    "edges",
                    "target",
                    "score",
                    "baseline_score",
                    "residual",
                    "evaluations",
                )
            ),
            strict=True,
        )
    )


def all_scores(store: Store, subject: Subject, kind: str, method: Method) -> list[Tensor]:
    """The node scores of every graph of a subject."""
    found: Sequence[Piece] = list(explained(store, subject, kind, method))
    scores = [a.nodes for piece in found for a in piece.attributions]
    return [scores[place] for place in subject.shared(kind)]
