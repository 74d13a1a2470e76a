"""What a model answers while (layer, edge) pairs are removed one after another.

With r[l, e] the step at which pair (l, e) goes, the state after t steps has the pairs with r[l, e] > t. Two ways:

* `MaskedLayers`: any model of `MessagePassing` layers; a state is a copy of the graph in a disjoint batch, whose
  messages are multiplied by zero or one in each layer by itself. Also differentiable in the masks.
* `shared_rows`: our own layers, h_v = rows(Σ over alive pairs), plus h_v in a residual layer if v's pair with itself is
  alive. Row v of layer l after t steps is the row after t − 1 steps unless a pair into v went at step t, or a row that
  an alive pair brings to v has changed. Only changed rows are computed, a small part of all; same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag
from torch_geometric.nn import MessagePassing

from apexgnn.errors import InputError
from apexgnn.nn.models import readout
from apexgnn.peers.case import Case
from apexgnn.peers.flows import LoopedEdges
from apexgnn.peers.layers import SumConv, Twin, with_self_masks
from apexgnn.replicas import copied_edges

LARGEST_MATRIX = 1024  # nodes; beyond it messages cost less than a matrix that is mostly zero


class MaskedLayers:
    """A model whose messages are multiplied by masks, layer by layer.

    Args:
        case: the question; its private model is changed.
        edges: the graph's edges with one self-loop per node.

    Attributes:
        layers: how many times messages are passed.
        removable: [L, E₀ + N] booleans; a layer's self-term cannot be masked unless it is a message or a SumConv's.
        order: [E], the graph's own columns, proper edges first, then its self-loops by node: so do layers order
            messages that put self-loops in the place of the graph's own.
    """

    def __init__(self, case: Case, edges: LoopedEdges) -> None:
        self.case, self.edges = case, edges
        self.order = edges.column.argsort(stable=True)
        self.model = with_self_masks(case.model)
        self.calls: list[MessagePassing] = []
        self.sizes: list[int] = []
        self.masks: Tensor | None = None
        self.copies = 1
        for module in self.model.modules():
            if isinstance(module, MessagePassing):
                module.register_forward_pre_hook(self._before)
                module.register_message_forward_hook(self._message)
        proper, nodes = int(edges.proper.sum()), case.question.x.size(0)
        self.proper, self.nodes = proper, nodes
        self._call(1)
        self.layers = len(self.calls)
        self.removable = torch.ones(self.layers, proper + nodes, dtype=torch.bool)
        for layer, (module, size) in enumerate(zip(self.calls, self.sizes, strict=True)):
            if size not in (edges.column.numel(), proper + nodes):
                got = f"{type(module).__name__} with {size} messages"
                raise InputError("model", got=got, expected="one message per edge, and at most one per node")
            if size == edges.column.numel() and not isinstance(module, SumConv):
                self.removable[layer, proper:] = False
                self.removable[layer, edges.column] = True

    def logits(self, masks: Tensor) -> Tensor:
        """[R, C], the logits under masks [R, L, E₀ + N]."""
        self.masks = masks.transpose(0, 1)
        try:
            return self._call(masks.size(0))
        finally:
            self.masks = None

    def _call(self, copies: int) -> Tensor:
        self.copies, self.calls, self.sizes = copies, [], []
        question, options = self.case.question, self.case.options
        if "batch" in options:
            options["batch"] = torch.arange(copies).repeat_interleave(self.nodes)
        if "edge_weight" in options:
            options["edge_weight"] = torch.cat(
                [w.repeat(copies) for w in self._parts(options["edge_weight"])]
            )
        parts = self._parts(question.data.edge_index)
        edge_index = torch.cat([copied_edges(p, copies=copies, num_nodes=self.nodes) for p in parts], 1)
        output = self.model(question.x.repeat(copies, 1), edge_index, **options)
        return output if self.case.index is None else output[self.case.index :: self.nodes]

    def _parts(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Values [..., E] of the graph's own columns: those of the proper edges, those of the self-loops."""
        ordered = values[..., self.order]
        return ordered[..., : self.proper], ordered[..., self.proper :]

    def _before(self, module: nn.Module, inputs: Any) -> None:
        if self.masks is not None and isinstance(module, SumConv):
            module.self_mask = self.masks[len(self.calls)][:, self.proper :].flatten()

    def _message(self, module: MessagePassing, inputs: Any, output: Tensor) -> Tensor | None:
        dim = module.node_dim
        layer = len(self.calls)
        self.calls.append(module)
        self.sizes.append(output.size(dim) // self.copies)
        if self.masks is None:
            return None
        mask = self.masks[layer]
        if output.size(dim) == self.copies * self.edges.column.numel():
            parts = self._parts(mask[:, self.edges.column])
        else:
            parts = mask[:, : self.proper], mask[:, self.proper :]
        mask = torch.cat([part.flatten() for part in parts])
        shape = [1] * output.dim()
        shape[dim] = -1
        return output * mask.view(shape)


@torch.no_grad()
def copied_states(masked: MaskedLayers, removal: Tensor, *, steps: int, rows_per_call: int) -> Tensor:
    """[S, T + 1, C], the logits of all states of S removal orders [S, L, E₀ + N], state by state."""
    step = torch.arange(steps + 1).view(1, -1, 1, 1)
    alive = (removal.unsqueeze(1) > step).flatten(0, 1)
    parts = alive.split(max(1, rows_per_call // masked.nodes))
    logits = torch.cat([masked.logits(part.to(masked.case.question.x)) for part in parts])
    return logits.unflatten(0, (removal.size(0), steps + 1))


def answering(masked: MaskedLayers) -> Callable[[Tensor], Tensor]:
    """Logits [1, C] of one graph as a differentiable function of masks [L, E₀ + N].

    For our own models with matrices in the place of messages, Σ_e m_e w_e h_u = (M h)_v: same numbers, and at the size
    of a molecule the cheapest way.
    """
    case, twin, edges = masked.case, masked.model, masked.edges
    nodes = masked.nodes
    if not isinstance(twin, Twin) or nodes > LARGEST_MATRIX:
        return lambda masks: masked.logits(masks.unsqueeze(0))
    place = edges.edge_index[1] * nodes + edges.edge_index[0]
    weights = [pair_weights(conv, case, edges) for conv in _sum_convs(twin)]

    def answer(masks: Tensor) -> Tensor:
        h = case.question.x
        for conv, weight, mask in zip(_sum_convs(twin), weights, masks, strict=True):
            matrix = weight.new_zeros(nodes * nodes).index_add(0, place, weight * mask)
            h = conv.finished(matrix.view(nodes, nodes) @ h, mask[-nodes:].unsqueeze(1) * h)
        return twin.head(readout(h, None, twin.readout) if case.index is None else h[[case.index]])

    return answer


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The different rows of one layer over all states.

    Attributes:
        values: [R, C], each different row once.
        of: [N, states], which of them a node has.
        changed: [N, states], where it differs from the state before.
    """

    values: Tensor
    of: Tensor
    changed: Tensor


@torch.no_grad()
def shared_rows(twin: Twin, case: Case, edges: LoopedEdges, *, removal: Tensor, steps: int) -> Tensor:
    """[S, T + 1, C], as `copied_states`, for the twin of one of our own models."""
    x = case.question.x
    states = removal.size(0) * (steps + 1)
    everywhere = torch.arange(len(x)).unsqueeze(1).expand(-1, states)
    rows = _Rows(x, everywhere, torch.zeros(len(x), states, dtype=torch.bool))
    for layer, conv in enumerate(_sum_convs(twin)):
        weight = pair_weights(conv, case, edges)
        rows = _next_rows(rows, conv, edges.edge_index, weight=weight, removal=removal[:, layer], steps=steps)
    if case.index is not None:
        out = rows.values[rows.of[case.index]]
    else:
        out = embedding_bag(rows.of.t().contiguous(), rows.values, mode=twin.readout)
    return twin.head(out).unflatten(0, (removal.size(0), steps + 1))


def _next_rows(
    rows: _Rows, conv: SumConv, edge_index: Tensor, *, weight: Tensor, removal: Tensor, steps: int
) -> _Rows:
    """One layer: find the rows that change, and compute those."""
    source, target = edge_index
    step = torch.arange(steps + 1)
    went = removal.t().unsqueeze(-1)  # [E₀ + N, S, 1]
    alive, now = (went > step).flatten(1), (went == step).flatten(1)
    touched = now | (alive & rows.changed[source])
    changed = torch.zeros(rows.of.shape, dtype=torch.int32).index_add(0, target, touched.int()) > 0
    changed.view(len(changed), -1, steps + 1)[:, :, 0] = True
    number = changed.flatten().cumsum(0).view_as(changed) - 1
    edge, state = (alive & changed[target]).nonzero(as_tuple=True)
    messages = rows.values[rows.of[source[edge], state]] * weight[edge].unsqueeze(1)
    sums = messages.new_zeros(int(number[-1, -1]) + 1, messages.size(1))
    sums.index_add_(0, number[target[edge], state], messages)
    h = conv.rows(sums)
    if conv.residual:
        node, state = changed.nonzero(as_tuple=True)
        h += rows.values[rows.of[node, state]] * alive[-len(changed) :][node, state].unsqueeze(1)
    return _Rows(h, number, changed)


def pair_weights(conv: SumConv, case: Case, edges: LoopedEdges) -> Tensor:
    """[E₀ + N]: edge weights, and (1 + ε) plus the weights of the graph's own self-loops."""
    x = case.question.x
    total = x.new_zeros(edges.edge_index.size(1))
    total[-len(x) :] = 1 + conv.eps
    weight = case.options.get("edge_weight")
    return total.index_add(0, edges.column, x.new_ones(len(edges.column)) if weight is None else weight)


def _sum_convs(twin: Twin) -> list[SumConv]:
    return [conv for conv in twin.convs if isinstance(conv, SumConv)]
