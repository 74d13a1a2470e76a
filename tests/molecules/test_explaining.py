"""Shares of atoms: exact against an integral written here, the same alone and in a table; bad rows are told."""

import numpy as np
import pytest
import torch

from apexgnn.data import Row, molecule_graph, read_table
from apexgnn.errors import BaselineError, MissingDependencyError, MoleculeError, NumericalError, TargetError
from apexgnn.molecules import explain_molecule, explain_rows, explaining
from molecules.toys import model

AVERAGE = [0.1 * k for k in range(9)]
SMILES = ["CCO", "c1ccccc1C(=O)O", "[Na+].[Cl-]", "C", "C[C@H](N)C(=O)O"]


def rows(*smiles):
    return [Row(k, {"smiles": text}, text) for k, text in enumerate(smiles, start=1)]


def integral(toy, smiles, start, target):
    """Σ over features of (x − x′) ∫ ∂f/∂x dτ by numpy's 20 points and plain autograd."""
    graph = molecule_graph(smiles, toy.featurizer)
    x, start = graph.x.double(), torch.as_tensor(start, dtype=torch.float64).expand_as(graph.x)
    total = torch.zeros_like(x)
    for point, weight in zip(*np.polynomial.legendre.leggauss(20), strict=True):
        z = (start + (point + 1) / 2 * (x - start)).requires_grad_()
        score = toy.network(z, graph.edge_index)[0, target]
        total += weight / 2 * torch.autograd.grad(score, z)[0]
    return ((x - start) * total).sum(dim=1).tolist()


@pytest.mark.parametrize("featurizer", ["moleculenet", "mutagenicity"])
@pytest.mark.parametrize("smiles", ["CCO", "[O-][N+](=O)c1ccccc1", "C"])
@pytest.mark.parametrize("baseline", ["zero", 0.5])
def test_shares_are_the_integral(featurizer, smiles, baseline):
    toy = model(featurizer)
    found = explain_molecule(toy, smiles, target="active", baseline=baseline)
    expected = integral(toy, smiles, 0.0 if baseline == "zero" else baseline, 1)
    np.testing.assert_allclose(found.shares, expected, rtol=1e-9, atol=1e-12)
    assert found.target == 1
    assert len(found.symbols) == len(found.shares)


def test_the_model_starts_from_its_average_atom():
    knowing, unknowing = model(average=AVERAGE), model()
    by_default = explain_molecule(knowing, "CCO")
    assert by_default.baseline == "average"
    np.testing.assert_allclose(
        by_default.shares, integral(knowing, "CCO", AVERAGE, by_default.target), rtol=1e-9, atol=1e-12
    )
    assert explain_molecule(unknowing, "CCO", baseline=AVERAGE).shares == by_default.shares
    assert explain_molecule(unknowing, "CCO").baseline == "zero"
    assert (
        explain_molecule(knowing, "CCO", baseline="zero").shares == explain_molecule(unknowing, "CCO").shares
    )


@pytest.mark.parametrize("baseline", [None, "zero", "mean", 0.5, AVERAGE])
def test_complete_and_predicted_as_the_network_predicts(baseline):
    toy = model(average=AVERAGE)
    found = explain_molecule(toy, "c1ccccc1C(=O)O", baseline=baseline)
    graph = molecule_graph("c1ccccc1C(=O)O")
    logits = toy.network(graph.x.double(), graph.edge_index)[0].detach()
    torch.testing.assert_close(found.logits, logits)
    assert found.predicted == found.target == int(logits.argmax())
    torch.testing.assert_close(found.probabilities, logits.exp() / logits.exp().sum())
    gained = float(found.attribution.score - found.attribution.baseline_score)
    assert abs(sum(found.shares) - gained) < 1e-9 * max(1, abs(gained))
    assert found.exact


@pytest.mark.parametrize(
    "baseline", ["median", "permutation", "average", [1.0, 2.0], float("nan"), [float("inf")] * 9]
)
def test_baselines_that_mean_nothing_are_refused(baseline):
    for ask in (lambda: explain_molecule(model(), "C", baseline=baseline),
                lambda: next(explain_rows(model(), rows("C"), baseline=baseline))):  # fmt: skip
        with pytest.raises(BaselineError, match="baseline"):
            ask()


@pytest.mark.parametrize("baseline", ["zero", "mean", "average"])
@pytest.mark.parametrize("window", [1, 2, 64])
def test_a_table_says_what_one_by_one_says(monkeypatch, baseline, window):
    monkeypatch.setattr(explaining, "WINDOW", window)
    toy = model(average=AVERAGE)
    items = list(explain_rows(toy, rows(*SMILES), baseline=baseline))
    assert [item.row.number for item in items] == [1, 2, 3, 4, 5]
    for item in items:
        alone = explain_molecule(toy, item.row.smiles, baseline=baseline)
        assert (item.explanation.symbols, item.explanation.target) == (alone.symbols, alone.target)
        np.testing.assert_allclose(item.explanation.shares, alone.shares, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(item.explanation.logits, alone.logits)


def test_bad_rows_have_a_reason_and_the_others_an_answer(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(
        'id,smiles\na,CCO\nb,C1CC\nc,\nd,"CC name"\ne,C[Si](C)C\nf,CC>>C\ng,*C\na,C\nh\ni,'
        + "C" * 14_000
        + "\nj,N\n"
    )
    toy = model(elements=["C", "O", "N"])
    items = list(explain_rows(toy, read_table(path, id_column="id")))
    assert [item.row.status for item in items] == ["ok", *["error"] * 9, "ok"]
    reasons = [
        "unclosed ring",
        "empty",
        "whitespace",
        "Si in",
        "a reaction",
        "dummy atom",
        "row 1 again",
        "1 cells",
    ]
    for item, reason in zip(items[1:], [*reasons, "14,000 characters"], strict=False):
        assert item.explanation is None
        assert item.row.error.startswith(f"row {item.row.number}: ")
        assert reason in item.row.error
    assert items[-1].explanation.symbols == ("N",)


def test_arithmetic_that_fails_for_one_row_fails_for_that_row_alone(monkeypatch):
    """A poisonous molecule in the middle of a window."""
    original = explaining.attribute_many

    def picky(network, graphs, **options):
        if any(graph.smiles == "CCO" for graph in graphs):
            raise NumericalError("score: got inf")
        return original(network, graphs, **options)

    monkeypatch.setattr(explaining, "attribute_many", picky)
    items = list(explain_rows(model(), rows("C", "CCO", "CC")))
    assert [item.row.status for item in items] == ["ok", "error", "ok"]
    assert items[1].row.error == "row 2: score: got inf"


def test_rows_are_read_as_they_are_needed():
    def endless():
        number = 0
        while True:
            yield Row(number := number + 1, {}, "C")

    items = explain_rows(model(), endless())
    assert [next(items).row.number for _ in range(70)] == list(range(1, 71))


def test_one_molecule_raises():
    with pytest.raises(MoleculeError, match="unclosed ring"):
        explain_molecule(model(), "C1CC")
    with pytest.raises(TargetError, match="'active'"):
        explain_molecule(model(), "C", target="loud")


def test_without_rdkit_the_way_to_it_is_named_once(monkeypatch):
    """Not as an error of every row."""
    import sys

    monkeypatch.setitem(sys.modules, "rdkit", None)
    for ask in (lambda: explain_molecule(model(), "C"), lambda: list(explain_rows(model(), rows("C", "CC")))):
        with pytest.raises(MissingDependencyError, match=r"apexgnn\[molecules\]"):
            ask()
