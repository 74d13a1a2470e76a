"""Who takes part in the contest on a PolyGIN, by name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import Tensor, nn

from apexgnn.benchmark.contenders import (
    Explain,
    Foreign,
    captum,
    forward,
    frozen,
    gauss,
    gradient,
    in_turn,
    ours,
    pyg_explainer,
    quadrature_of_ours,
    side_by_side,
)
from apexgnn.benchmark.molecules import Graphs
from apexgnn.errors import MissingDependencyError
from apexgnn.explain.fused import fused_attribution
from apexgnn.nn import PolyGIN

FORWARD, GRADIENT, WITH_PARAMETERS = "forward", "one gradient", "one gradient, parameters not frozen"
OURS, KERNEL, ENGINE = "apexgnn.attribute", "its fused kernel alone", "apexgnn.attribute, PathTensor engine"
IN_TURN, BATCHED = "Gauss–Legendre 8, in turn", "Gauss–Legendre 8, side by side"
OWN_IG = "apexgnn.integrated_gradients, 8 points"
CAPTUM, CAPTUM_PARTS = "Captum IG, default (50 points)", "Captum IG, default, points in small parts"
CAPTUM_8 = "Captum IG, Gauss–Legendre, 8 points"
PYG, MASK = "PyG CaptumExplainer IG, default (50)", "PyG GNNExplainer, 200 epochs"

ORDER = (
    *(FORWARD, GRADIENT, WITH_PARAMETERS, OURS, KERNEL, ENGINE, IN_TURN, BATCHED, OWN_IG),
    *(CAPTUM, CAPTUM_PARTS, CAPTUM_8, PYG, MASK),
)
UNCHECKED = (FORWARD, GRADIENT, WITH_PARAMETERS, MASK)  # these answer other questions
ROWS = 4096
LARGEST = 100_000  # rows that a plain backward pass is given at once: about 3 GB


def contenders(model: PolyGIN, graphs: Graphs, target: Tensor) -> Iterator[tuple[str, Explain | str]]:
    """What is called, by name; or why it is not."""
    still, rows = frozen(model), len(graphs.x)
    yield FORWARD, partial(forward, still, graphs, target)
    yield GRADIENT, partial(gradient, still, graphs, target)
    yield WITH_PARAMETERS, partial(gradient, model, graphs, target)
    yield OURS, partial(ours, model, graphs, target)
    yield KERNEL, partial(_kernel, model, graphs, target)
    yield ENGINE, partial(ours, Foreign(model).eval(), graphs, target)
    yield IN_TURN, partial(in_turn, still, graphs, target, gauss(8))
    yield BATCHED, _if_it_fits(8 * rows) or partial(side_by_side, still, graphs, target, gauss(8))
    yield OWN_IG, partial(quadrature_of_ours, model, graphs, target, 8)
    yield CAPTUM, _if_it_fits(50 * rows) or _captum(still, graphs, target, points=50)
    at_once = max(1, ROWS // rows)
    if at_once < 50:
        yield CAPTUM_PARTS, _captum(still, graphs, target, points=50, at_once=at_once)
    yield CAPTUM_8, _if_it_fits(8 * rows) or _captum(still, graphs, target, points=8)
    yield PYG, _pyg(still, graphs, target)
    yield MASK, "one graph at a time" if graphs.number > 1 else _pyg(still, graphs, target, epochs=200)


def _if_it_fits(rows: int) -> str:
    if rows <= LARGEST * 1.3:
        return ""
    return f"{rows:,} rows in one pass need about {rows * 30e3 / 2**30:.0f} GiB"


def _captum(model: nn.Module, graphs: Graphs, target: Tensor, **how: Any) -> Explain | str:
    try:
        return captum(model, graphs, target, **how)
    except MissingDependencyError as error:
        return str(error)


def _pyg(model: nn.Module, graphs: Graphs, target: Tensor, *, epochs: int | None = None) -> Explain | str:
    try:
        return pyg_explainer(frozen(model), graphs, target, epochs=epochs)
    except ImportError:
        return "Captum is not installed"


def _kernel(model: PolyGIN, graphs: Graphs, target: Tensor) -> Tensor:
    x, edge_index, batch, number = graphs
    return fused_attribution(model, x, edge_index, batch=batch, num_graphs=number, target=target).features
