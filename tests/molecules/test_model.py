"""A model is used on molecules only if it is known how they become its input and what its output means."""

import pytest

from apexgnn import zoo
from apexgnn.errors import CheckpointError, InputError, NotPolynomialError, TargetError
from apexgnn.molecules import MoleculeModel, open_model
from apexgnn.nn import GIN, PolyGIN, save
from molecules.toys import LABELS, model, network

FACTS = {"featurizer": "moleculenet", "labels": list(LABELS)}


def saved(tmp_path, metadata, made=None):
    save(made or network(), tmp_path / "model", metadata=metadata)
    return tmp_path / "model"


def test_metadata_says_how_to_use_it(tmp_path):
    opened = open_model(saved(tmp_path, FACTS | {"elements": ["C", "O"], "average": [0.5] * 9}))
    assert (opened.labels, opened.featurizer, opened.elements) == (LABELS, "moleculenet", ("C", "O"))
    assert (opened.average, opened.baseline) == ((0.5,) * 9, "average")
    assert (opened.certificate.degree, opened.certificate.points, len(opened.sha256)) == (16, 8, 64)
    assert not opened.network.training


def test_what_metadata_leave_out_is_the_data_sets(tmp_path):
    """As `apexgnn train` saves it: the outcome names the data set."""
    opened = open_model(saved(tmp_path, {"labels": ["no", "yes"], "outcome": {"dataset": "bbbp"}}))
    assert (opened.featurizer, opened.labels, opened.baseline) == ("moleculenet", ("no", "yes"), "zero")
    assert "Si" not in opened.elements
    assert {"C", "N", "O"} < set(opened.elements)


def test_names_of_the_zoo_come_first_and_folders_are_paths(tmp_path, monkeypatch):
    monkeypatch.setattr(zoo, "SHELF", tmp_path / "shelf")
    save(network(), tmp_path / "shelf" / "bbbp", metadata=FACTS)
    monkeypatch.chdir(tmp_path)
    save(network(), tmp_path / "bbbp", metadata=FACTS | {"labels": ["other", "folder"]})
    assert open_model("bbbp").labels == LABELS
    assert open_model("./bbbp").labels == ("other", "folder")


@pytest.mark.parametrize(
    "metadata, why",
    [
        ({}, "no featurizer and labels"),
        ({"labels": ["a", "b"]}, "no featurizer and labels"),
        (FACTS | {"labels": "ab"}, "no featurizer and labels"),
        (FACTS | {"labels": ["one"]}, "1 labels; expected 2"),
        (FACTS | {"featurizer": "ecfp"}, "ecfp"),
        (FACTS | {"featurizer": "mutagenicity"}, "9 features per atom; expected 14"),
        (FACTS | {"elements": "CNO"}, "a list of symbols"),
        (FACTS | {"average": ["x"]}, "a list of numbers"),
        (FACTS | {"average": [1.0]}, "1 numbers; expected 9"),
        ({"outcome": {"dataset": "graph-sst2"}}, "no molecules: trained on graph-sst2"),
        ({"outcome": {"dataset": "ba-shapes"}}, "no molecules"),
        ({"outcome": {"dataset": "esol"}}, "no molecules"),
        (FACTS | {"task": "node"}, "no molecules: a node task"),
    ],
)
def test_models_that_do_not_fit_are_refused(tmp_path, metadata, why):
    with pytest.raises(InputError, match=why):
        open_model(saved(tmp_path, metadata))


def test_other_tasks_and_other_networks_are_refused(tmp_path):
    with pytest.raises(InputError, match="does not classify graphs"):
        open_model(saved(tmp_path, FACTS, network(task="node")))
    with pytest.raises(NotPolynomialError, match="relu"):
        open_model(saved(tmp_path, FACTS, GIN(9, 2, hidden_channels=3)))


@pytest.mark.parametrize("name", ["caffeine", "model.pt", "ba-shapes", "graph-sst2", "esol"])
def test_what_is_no_model_of_molecules_is_refused_by_name(name):
    with pytest.raises(InputError, match=name):
        open_model(name)


def test_a_damaged_model_is_refused(tmp_path):
    folder = saved(tmp_path, FACTS)
    (weights,) = folder.glob("*.safetensors")
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    with pytest.raises(CheckpointError, match="SHA-256"):
        open_model(folder)


def test_classes_by_label_or_number():
    toy = model()
    assert [toy.target(w) for w in (None, "ACTIVE", " active ", "1", 0, LABELS[0])] == [None, 1, 1, 1, 0, 0]
    for wrong in ("2", "-1", 7, "", "aktiv"):
        with pytest.raises(TargetError, match="'active'"):
            toy.target(wrong)


def test_a_label_that_is_a_number_is_a_label():
    toy = MoleculeModel.of(PolyGIN(9, 2), name="toy", labels=["1", "0"], featurizer="moleculenet")
    assert toy.target("1") == 0
