"""Molecules explained: one, or a stream of rows, where a bad row has a reason and the others go on.

What is explained is a logit f, one output of the network before softmax:

    f(X) = f(X′) + Σ_i φ_i,    φ_i the share of atom i (its features summed)

X′ has the same bonds and other atoms. All zero is no atom at all, and a polynomial of degree 16 can be huge there;
so a model that knows the average atom of its training data starts from that one.

The probabilities p = softmax(f) are shown beside it; they are no polynomials, and their shares would be no exact
ones. Atom i is atom i of the SMILES string; hydrogens that the featurizer adds come after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from apexgnn.attribution import Attribution
from apexgnn.data import Row, molecule, molecule_graph
from apexgnn.errors import ApexError, BaselineError, MoleculeError
from apexgnn.explain import attribute, attribute_many
from apexgnn.explain.baselines import single_baseline
from apexgnn.molecules.model import MoleculeModel

WINDOW = 64
BASELINES = ("average", "mean", "zero")


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What a model says of a molecule, and the share that every atom has in it.

    Attributes:
        smiles: the molecule.
        symbols: the element of each atom.
        labels: meaning of each class.
        logits: [C], what the model gives before softmax.
        attribution: of the logit `attribution.target`; its `nodes` are the atoms' shares.
        baseline: the name of what they start from.
    """

    smiles: str
    symbols: tuple[str, ...]
    labels: tuple[str, ...]
    logits: Tensor
    attribution: Attribution
    baseline: str

    @property
    def probabilities(self) -> Tensor:
        """[C], the softmax of the logits."""
        return self.logits.softmax(dim=0)

    @property
    def predicted(self) -> int:
        """The class with the largest logit."""
        return int(self.logits.argmax())

    @property
    def target(self) -> int:
        """The class whose logit is explained."""
        return int(self.attribution.target)

    @property
    def shares(self) -> list[float]:
        """One signed share for each atom."""
        return [float(value) for value in self.attribution.nodes]

    @property
    def exact(self) -> bool:
        """Whether a certificate stands behind the shares."""
        return self.attribution.exact


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """A row of a table with its explanation; without one, `row.error` says why."""

    row: Row
    explanation: Explanation | None


@dataclass(frozen=True, slots=True, eq=False)
class _Start:
    """A baseline: its name, and the value that `attribute` takes."""

    name: str
    value: Any


def explain_molecule(
    model: MoleculeModel, smiles: str, *, target: str | int | None = None, baseline: Any = None
) -> Explanation:
    """Predict one molecule, and attribute a logit to its atoms.

    Args:
        model: from `open_model`.
        smiles: the molecule.
        target: a class by label or number; None explains the predicted one.
        baseline: "average" (the atom of the training data), "mean" (of this molecule's atoms), "zero", a number or a
            row [F] for all atoms; None is the model's own, `model.baseline`.

    >>> from apexgnn.nn import PolyGIN
    >>> network = PolyGIN(9, 2, hidden_channels=4)
    >>> model = MoleculeModel.of(network, name="toy", labels=["no", "yes"], featurizer="moleculenet")
    >>> found = explain_molecule(model, "CO")
    >>> bool(abs(sum(found.shares) - (found.attribution.score - found.attribution.baseline_score)) < 1e-9)
    True
    """
    wanted, start = model.target(target), _start(baseline, model)
    graph = _graph(model, smiles)
    result = attribute(model.network, graph, target=wanted, baseline=start.value)
    return _explanation(model, graph, _logits(model, [graph])[0], result, start)


def explain_rows(
    model: MoleculeModel, rows: Iterable[Row], *, target: str | int | None = None, baseline: Any = None
) -> Iterator[Explained]:
    """Every row with its explanation, in order; `rows` is read `WINDOW` rows ahead.

    Args:
        rows: a `Table`, or any rows.
        model, target, baseline: as for `explain_molecule`.

    >>> from apexgnn.nn import PolyGIN
    >>> network = PolyGIN(9, 2, hidden_channels=4)
    >>> model = MoleculeModel.of(network, name="toy", labels=["no", "yes"], featurizer="moleculenet")
    >>> found = explain_rows(model, [Row(1, {}, "CCO"), Row(2, {}, "C1CC")])
    >>> [(item.row.status, item.explanation is not None) for item in found]
    [('ok', True), ('error', False)]
    """
    wanted, start, stream = model.target(target), _start(baseline, model), iter(rows)
    while window := list(islice(stream, WINDOW)):
        yield from _explained(model, [_read(model, row) for row in window], wanted, start)


def _start(baseline: Any, model: MoleculeModel) -> _Start:
    """What `attribute` shall start from: the same for a molecule alone and among others."""
    named = model.baseline if baseline is None else baseline
    if not isinstance(named, str):
        row = single_baseline(named, torch.zeros(1, model.network.config["in_channels"]).double())[0]
        return _Start(",".join(f"{value:g}" for value in row.tolist()), row)
    if named == "average" and model.average is not None:
        return _Start(named, torch.tensor(model.average, dtype=torch.float64))
    if named == "average":
        got, fix = f"'average', which {model.name} does not know", "use zero, mean or numbers"
        raise BaselineError("baseline", got=got, expected="a model that knows it", fix=fix)
    if named not in BASELINES:
        expected = ", ".join(BASELINES) + ", a number, or one number for each feature"
        raise BaselineError("baseline", got=repr(named), expected=expected)
    return _Start(named, None if named == "zero" else named)


def _read(model: MoleculeModel, row: Row) -> tuple[Row, Data | None]:
    if row.error:
        return row, None
    try:
        return row, _graph(model, row.smiles)
    except MoleculeError as error:
        return replace(row, error=f"row {row.number}: {error}"), None


def _explained(
    model: MoleculeModel, window: list[tuple[Row, Data | None]], target: int | None, start: _Start
) -> Iterator[Explained]:
    """Together if that works; if arithmetic or memory fails, one by one, to find whose fault it is."""
    graphs = [graph for _, graph in window if graph is not None]
    try:
        logits = _logits(model, graphs)
        options: dict[str, Any] = {"target": target, "baseline": start.value, "progress": False}
        results = list(attribute_many(model.network, graphs, **options))
    except ApexError as error:
        if len(window) > 1:
            for pair in window:
                yield from _explained(model, [pair], target, start)
            return
        (row, _) = window[0]
        yield Explained(replace(row, error=f"row {row.number}: {error}"), None)
        return
    answers = iter(zip(logits, results, strict=True))
    for row, graph in window:
        found = None if graph is None else _explanation(model, graph, *next(answers), start)
        yield Explained(row, found)


def _graph(model: MoleculeModel, smiles: str) -> Data:
    graph = molecule_graph(smiles, model.featurizer, elements=model.elements)
    graph.x = graph.x.double()
    return graph


@torch.no_grad()
def _logits(model: MoleculeModel, graphs: list[Data]) -> Tensor:
    if not graphs:
        return torch.empty(0)
    joined = Batch.from_data_list(graphs)
    logits: Tensor = model.network(joined.x, joined.edge_index, batch=joined.batch)
    return logits


def _explanation(
    model: MoleculeModel, graph: Data, logits: Tensor, result: Attribution, start: _Start
) -> Explanation:
    mol = molecule(graph.smiles, model.featurizer)
    symbols = tuple(atom.GetSymbol() for atom in mol.GetAtoms())
    return Explanation(graph.smiles, symbols, model.labels, logits, result, start.name)
