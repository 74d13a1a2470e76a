"""Streams of graphs, and many nodes of one large graph, explained in batches of bounded size.

Graphs are read ahead a window at a time, put into batches with others of their size, and come out in the order in
which they went in. For nodes, the batch is made of their receptive fields: the output of a network of L message
passing layers at v depends on the nodes within L steps against the edges, and on no others, so the explanation on
that part alone is identical, and its cost follows the neighbourhood and not the graph. What is known of a PolyGIN
is a claim for any other model, and is held against its scores on the whole graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor
from torch_geometric.data import Batch, Data

from apexgnn.attribution import Attribution
from apexgnn.errors import InputError, TargetError
from apexgnn.explain.attribute import attribute
from apexgnn.explain.certify import BELIEVABLE
from apexgnn.explain.fused import fusable
from apexgnn.explain.question import Call, Model, Question, Target, ask, whole_numbers
from apexgnn.explain.receptive import Field, Fields
from apexgnn.nn.models import PolyGIN

ROWS = 4096
WINDOW = 2048


def attribute_many(
    model: Model,
    graphs: Iterable[Data],
    *,
    target: Target = None,
    baseline: Any = None,
    call: Call | None = None,
    memory: int = 2**30,
    progress: bool = True,
) -> Iterator[Attribution]:
    """Exact attributions of a stream of graphs, one by one in their order, with bounded memory.

    Args:
        graphs: any iterable of `Data`; it is read as the results are taken.
        target: a column for all graphs, or one for each; None explains each one's predicted class.
        baseline: None, a number or a row [F], for all graphs.
        memory: bound in bytes on one batch.
        progress: show a bar on the terminal.
        model, call: as for `apexgnn.attribute`.

    >>> model = PolyGIN(2, 2, hidden_channels=4).eval()
    >>> chain = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> [tuple(result.features.shape) for result in attribute_many(model, [chain] * 3, progress=False)]
    [(3, 2), (3, 2), (3, 2)]
    """
    stream, start = iter(graphs), 0
    with _bar(progress, len(graphs) if isinstance(graphs, Sequence) else None) as advance:
        while window := list(islice(stream, WINDOW)):
            done: dict[int, Attribution] = {}
            for batch in _batches([data.num_nodes or 0 for data in window]):
                joined = _joined(window, batch, start)
                wanted = _targets(target, [start + k for k in batch])
                result = attribute(model, joined, target=wanted, baseline=baseline, call=call, memory=memory)
                done |= zip(batch, _split(result, joined), strict=True)
                advance(len(batch))
            yield from (done[k] for k in range(len(window)))
            start += len(window)


def attribute_nodes(
    model: Model,
    data: Data,
    index: Sequence[int] | Tensor,
    *,
    hops: int | None = None,
    target: Target = None,
    baseline: Any = None,
    memory: int = 2**30,
) -> Iterator[Attribution]:
    """Exact attributions of many nodes of one graph, in their order; each speaks of the nodes in `subset` alone.

    Args:
        index: the nodes to explain.
        hops: how many steps the model looks; known for a PolyGIN, and to be given for any other model. A layer
            that normalises by the degree of both ends, as GCNConv does, looks one step further.
        target: a column for all nodes, or one for each; None explains each one's predicted class.
        model, data, baseline, memory: as for `apexgnn.attribute`.

    >>> model = PolyGIN(2, 2, hidden_channels=4, num_layers=1, task="node").eval()
    >>> chain = Data(x=torch.rand(5, 2), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> [result.subset.tolist() for result in attribute_nodes(model, chain, [4, 1])]
    [[3, 4], [0, 1]]
    """
    if hops is None and isinstance(model, PolyGIN):
        hops = len(model.convs)
    if not isinstance(hops, int) or hops < 0:
        raise InputError(
            "hops", got=repr(hops), expected="how many steps the model looks, unless it is a PolyGIN"
        )
    nodes = whole_numbers("index", index).tolist()
    if not nodes:
        return
    whole = ask(model, data, baseline=baseline, index=nodes[0])
    fields = Fields.of(data.edge_index, len(whole.x))
    ends = None if fusable(model) else _on_the_whole_graph(whole)
    first = 0
    while first < len(nodes):
        batch: list[Field] = []
        rows = 0
        while first + len(batch) < len(nodes) and (not batch or rows < ROWS):
            batch.append(fields.around(nodes[first + len(batch)], hops))
            rows += len(batch[-1].nodes)
        joined = Batch.from_data_list([field.part(data) for field in batch])
        centres = joined.ptr[:-1] + torch.tensor([field.centre for field in batch])
        start = [torch.cat([one[field.nodes] for field in batch]) for one in whole.baselines]
        wanted = _targets(target, list(range(first, first + len(batch))))
        result = attribute(model, joined, index=centres, target=wanted, baseline=start, memory=memory)
        for node, field, own in zip(nodes[first:], batch, _split(result, joined), strict=False):
            if ends is not None:
                _check_hops(hops, node, own, ends)
            yield replace(own, subset=field.nodes)
        first += len(batch)


def _on_the_whole_graph(question: Question) -> tuple[Tensor, Tensor]:
    """The scores [N, C] of all nodes, and the means of those at the baselines."""
    every = replace(question, index=torch.arange(len(question.x)))
    starts = [every.logits(baseline) for baseline in question.baselines]
    return every.logits(question.x), torch.stack(starts).mean(dim=0)


def _check_hops(hops: int, node: int, result: Attribution, ends: tuple[Tensor, Tensor]) -> None:
    """The scores on the field are those on the graph, or the model looks further than was said."""
    size = max(float(end[node].abs().max()) for end in ends)
    for end, own in zip(ends, (result.score, result.baseline_score), strict=True):
        if abs(float(end[node, int(result.target)] - own)) > BELIEVABLE * size:
            expected = f"the steps that the model looks: node {node} has another score on its field alone"
            raise InputError("hops", got=str(hops), expected=expected, fix="one more, or apexgnn.attribute")


def _batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Graphs of like size together, about `ROWS` rows at a time."""
    batch: list[int] = []
    rows = 0
    for k in sorted(range(len(sizes)), key=sizes.__getitem__):
        if batch and rows + sizes[k] > ROWS:
            yield batch
            batch, rows = [], 0
        batch.append(k)
        rows += sizes[k]
    if batch:
        yield batch


def _joined(window: Sequence[Data], batch: Sequence[int], start: int) -> Batch:
    for k in batch:
        if not window[k].num_nodes:
            raise InputError(f"graph {start + k}", got="no nodes", expected="at least one node")
    return Batch.from_data_list([window[k] for k in batch])


def _targets(target: Target, positions: list[int]) -> Target:
    if target is None:
        return None
    columns = whole_numbers("target", target)
    if columns.numel() == 1:
        return columns
    if max(positions) >= columns.numel():
        raise TargetError("target", got=f"{columns.numel()} entries", expected="one, or one for each")
    return columns[positions]


def _split(result: Attribution, batch: Batch) -> Iterator[Attribution]:
    """One attribution per graph."""
    bounds = batch.ptr.tolist()
    assert result.features is not None
    for g, (low, high) in enumerate(pairwise(bounds)):
        per_graph = {
            name: getattr(result, name)[g : g + 1]
            for name in ("target", "score", "baseline_score", "residual")
        }
        condition = None if result.condition is None else result.condition[g : g + 1]
        yield replace(
            result,
            features=result.features[low:high],
            nodes=result.nodes[low:high],
            condition=condition,
            **per_graph,
        )


def _bar(shown: bool, total: int | None) -> Any:
    """A context that gives a function to call with the number of graphs done."""
    if not shown:
        return nullcontext(lambda count: None)
    return _Bar(total)


class _Bar:
    def __init__(self, total: int | None) -> None:
        columns = (TextColumn("explaining"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.progress, self.total = Progress(*columns, transient=True), total

    def __enter__(self) -> Any:
        self.progress.__enter__()
        task = self.progress.add_task("", total=self.total)
        return lambda count: self.progress.advance(task, count)

    def __exit__(self, *exception: Any) -> None:
        self.progress.__exit__(*exception)
