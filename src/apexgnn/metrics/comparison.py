"""Explainers side by side on the same model and graphs: fidelity, residual, seconds, evaluations.

Every explainer explains the predicted class of every graph, under a seed that depends on the graph's place alone, and
meets the same masked graphs. An explainer that refuses the model is reported with its reason, not left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from apexgnn.attribution import Attribution
from apexgnn.errors import ApexError
from apexgnn.metrics.completeness import completeness
from apexgnn.metrics.fidelity import Fidelity, fidelity
from apexgnn.metrics.protocol import Protocol as Choices


class Explains(Protocol):
    """Anything that explains one graph, as the peers do."""

    def explain(
        self, model: nn.Module, data: Data, *, target: Any = None, index: Any = None, seed: int = 0
    ) -> Attribution:
        """Explain a graph, or a node of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """What one explainer did.

    Attributes:
        name: as given.
        fidelity: both fidelities; None if it refused.
        residual: [G], |Σφ − (f(X) − f(X′))|; None if it refused.
        change: [G], |f(X) − f(X′)|, against which the residual is to be read; None if it refused.
        seconds: per graph, explaining alone; what was learned before is not counted.
        evaluations: of the model, per graph, the mean.
        refusal: why it did not explain, or "".
    """

    name: str
    fidelity: Fidelity | None
    residual: Tensor | None
    change: Tensor | None
    seconds: float
    evaluations: float
    refusal: str = ""


def compare(
    model: nn.Module,
    graphs: Sequence[Data],
    *,
    explainers: Mapping[str, Explains],
    index: Sequence[int] | None = None,
    protocol: Choices | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> tuple[Row, ...]:
    """One row per explainer, in the order given.

    Args:
        model, graphs, index, protocol: as for `fidelity`.
        explainers: by name; fitted, where they need to be.
        seed: graph i is explained under seed + i.
        progress: told the name of each explainer when its turn comes.

    >>> import torch
    >>> from apexgnn import peers
    >>> from apexgnn.nn import GIN
    >>> data = Data(x=torch.rand(4, 3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    >>> rows = compare(
    ...     GIN(3, 2, hidden_channels=4),
    ...     [data],
    ...     explainers={name: peers.get(name) for name in ("apex", "saliency")},
    ...     protocol=Choices(correct_only=False),
    ... )
    >>> [(row.name, bool(row.refusal)) for row in rows]
    [('apex', True), ('saliency', False)]
    """
    rows = []
    for name, explainer in explainers.items():
        if progress is not None:
            progress(name)
        started = perf_counter()
        try:
            found = [
                explainer.explain(model, graph, index=None if index is None else index[i], seed=seed + i)
                for i, graph in enumerate(graphs)
            ]
        except ApexError as error:
            rows.append(Row(name, None, None, None, 0.0, 0.0, refusal=f"{type(error).__name__}: {error}"))
            continue
        seconds = (perf_counter() - started) / len(graphs)
        measured = fidelity(model, graphs, scores=found, index=index, protocol=protocol)
        evaluations = sum(a.evaluations for a in found) / len(found)
        change = torch.cat([(a.score - a.baseline_score).abs() for a in found])
        rows.append(Row(name, measured, completeness(found).absolute, change, seconds, evaluations))
    return tuple(rows)
