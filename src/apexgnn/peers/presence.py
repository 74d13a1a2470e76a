"""What a model answers when the features of some nodes are zero, for many choices of nodes.

With h_v = rows((1 + ε) h_v + Σ h_u) in every layer, row v after l layers depends only on who is present among the nodes
within l steps of v: its ball. Of the rows of all choices most are therefore the same; each different one, named by
(v, who is present in the ball), is computed once and remembered. Same numbers as from copies of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from apexgnn.nn import GIN, PolyGIN
from apexgnn.peers.case import Case
from apexgnn.peers.flows import LoopedEdges, looped
from apexgnn.peers.layers import SumConv, Twin, message_passing
from apexgnn.peers.removal import pair_weights
from apexgnn.replicas import ROWS_PER_CALL

NAME_BITS = 62  # a row is named by one 64-bit integer: the node above, one bit per member of its ball below
REMEMBERED = 200_000  # rows per layer, 240 MB at 300 channels


@dataclass(slots=True, eq=False)
class _Table:
    """The rows of one layer that are known: sorted names, the place of each, the rows in a buffer that grows."""

    names: Tensor
    place: Tensor
    buffer: Tensor

    def add(self, names: Tensor, rows: Tensor) -> None:
        """Remember new rows."""
        count = len(self.names)
        if count + len(rows) > len(self.buffer):
            grown = rows.new_empty(2 * (count + len(rows)), rows.size(1))
            grown[:count] = self.buffer[:count] if count else grown[:0]
            self.buffer = grown
        self.buffer[count : count + len(rows)] = rows
        self.names, order = torch.cat([self.names, names]).sort()
        self.place = torch.cat([self.place, count + torch.arange(len(rows))])[order]


class SharedPresence:
    """Logits of one of our own models under choices of present nodes; see the module.

    >>> from apexgnn.explain.question import ask
    >>> from torch_geometric.data import Data
    >>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> model = GIN(2, 2, hidden_channels=4).eval()
    >>> shared = SharedPresence.of(Case(ask(model, data), torch.tensor([0])))
    >>> present = torch.tensor([[True, True, False]])
    >>> torch.allclose(shared.logits(present), model(data.x * present.t(), data.edge_index), atol=1e-6)
    True
    """

    def __init__(self, case: Case, twin: Twin, edges: LoopedEdges, powers: list[Tensor]) -> None:
        self.case, self.twin, self.edges, self.powers = case, twin, edges, powers
        self._forget()

    @classmethod
    def of(cls, case: Case) -> SharedPresence | None:
        """For our own models, if the balls are small enough to be named; else None."""
        if type(case.model) not in (GIN, PolyGIN):
            return None
        twin = message_passing(case.model)
        assert isinstance(twin, Twin)
        nodes = len(case.question.x)
        edges = looped(case.edge_index, nodes)
        reach = torch.eye(nodes, dtype=torch.bool)  # [u, v]: u is in the ball of v
        powers = []
        for _ in twin.convs:
            source, target = edges.edge_index
            reach = (
                torch.zeros(nodes, nodes, dtype=torch.int32).index_add(1, target, reach[:, source].int()) > 0
            )
            if int(reach.sum(0).max()) + nodes.bit_length() > NAME_BITS:
                return None
            powers.append(torch.where(reach, 1 << (reach.cumsum(0) - 1).clamp(min=0), 0))
        return cls(case, twin, edges, powers)

    @torch.no_grad()
    def logits(self, present: Tensor) -> Tensor:
        """[K, C], for choices [K, N] of present nodes."""
        parts = present.split(max(1, 8 * ROWS_PER_CALL // present.size(1)))
        return torch.cat([self._part(part) for part in parts])

    def _forget(self) -> None:
        empty = torch.empty(0, dtype=torch.long)
        self.tables = [_Table(empty, empty, self.case.question.x[:0]) for _ in self.powers]

    def _part(self, present: Tensor) -> Tensor:
        if any(len(table.names) > REMEMBERED for table in self.tables):
            self._forget()
        x = self.case.question.x
        nodes = torch.arange(len(x))
        below, of = (
            torch.cat([torch.zeros_like(x), x]),
            nodes + len(x) * present,
        )  # row v is zero, row N + v is x_v
        for layer, table in enumerate(self.tables):
            of = self._known(table, layer, present, below=below, of=of)
            below = table.buffer
        if self.case.index is not None:
            return self.twin.head(below[of[:, self.case.index]])
        return self.twin.head(embedding_bag(of, below, mode=self.twin.readout))

    def _known(self, table: _Table, layer: int, present: Tensor, *, below: Tensor, of: Tensor) -> Tensor:
        """[K, N], the row of every node in every choice; rows that are new are computed."""
        top = torch.arange(present.size(1)) << (NAME_BITS - present.size(1).bit_length())
        names = (present.long() @ self.powers[layer] + top).flatten()
        different, which = torch.unique(names, return_inverse=True)
        example = torch.empty_like(different).scatter_(0, which, torch.arange(len(names)))
        new = ~torch.isin(different, table.names, assume_unique=True)
        if bool(new.any()):
            table.add(different[new], self._rows(layer, example[new], below, of))
        return table.place[torch.searchsorted(table.names, different)][which].view_as(present)

    def _rows(self, layer: int, example: Tensor, below: Tensor, of: Tensor) -> Tensor:
        """Rows of a layer from those below; an example is choice · N + node."""
        conv = self.twin.convs[layer]
        assert isinstance(conv, SumConv)
        weight = pair_weights(conv, self.case, self.edges)
        source, target = self.edges.edge_index
        choice, node = example // of.size(1), example % of.size(1)
        into = target.argsort(stable=True)
        count = torch.bincount(target, minlength=of.size(1))
        first, repeats = (count.cumsum(0) - count)[node], count[node]
        row = torch.arange(len(node)).repeat_interleave(repeats)
        within = torch.arange(len(row)) - (repeats.cumsum(0) - repeats)[row]
        edge = into[first[row] + within]
        messages = below[of[choice[row], source[edge]]] * weight[edge].unsqueeze(1)
        total = messages.new_zeros(len(node), messages.size(1)).index_add_(0, row, messages)
        return conv.finished(total, below[of[choice, node]])
