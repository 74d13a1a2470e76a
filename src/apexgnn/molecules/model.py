"""A trained model together with what it takes to use it on molecules: featurizer, elements, labels, certificate.

A model is named by the zoo, or by the folder it was saved in. What the featurizer and the labels are is read from
its metadata; where they do not say, from the data set that it was trained on. Nothing is guessed from the width.

It computes in float64: for molecules that costs little, and rounding is then no matter (a polynomial of degree 16
can cancel much of what it adds up).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from apexgnn import zoo
from apexgnn.attribution import Certificate
from apexgnn.data import Featurizer, describe, names
from apexgnn.data.molecules import WIDTHS
from apexgnn.errors import CheckpointError, InputError, TargetError
from apexgnn.explain import certify
from apexgnn.nn import GIN, Checkpoint, PolyGIN, load, read_checkpoint


@dataclass(frozen=True, slots=True, eq=False)
class MoleculeModel:
    """A certified network that takes molecules.

    Attributes:
        name: the zoo's name of it, or its folder.
        network: in eval mode, float64.
        labels: meaning of each class.
        featurizer: how a SMILES string becomes a graph.
        elements: the only ones it takes; None if that is not known.
        certificate: of which degree its logits are.
        average: the mean feature row of the atoms that it was trained on; None if that is not known.
        sha256: of its weights; empty for a network that was not loaded.
    """

    name: str
    network: PolyGIN | GIN
    labels: tuple[str, ...]
    featurizer: Featurizer
    elements: tuple[str, ...] | None
    certificate: Certificate
    average: tuple[float, ...] | None = None
    sha256: str = ""

    @classmethod
    def of(
        cls,
        network: PolyGIN | GIN,
        *,
        name: str,
        labels: Sequence[str],
        featurizer: str,
        elements: Sequence[str] | None = None,
        average: Sequence[float] | None = None,
        sha256: str = "",
    ) -> MoleculeModel:
        """Check that the parts belong together, and certify the network.

        Raises:
            NotPolynomialError: if it has no certificate.

        >>> MoleculeModel.of(PolyGIN(9, 2), name="toy", labels=["no"], featurizer="moleculenet")
        Traceback (most recent call last):
            ...
        apexgnn.errors.InputError: toy: labels: got 1 labels; expected 2, one for each class.
        """
        kind, config = Featurizer(featurizer), network.config
        if config["task"] != "graph" or config["out_channels"] < 2:
            raise not_molecular(name, "a model that does not classify graphs")
        if config["in_channels"] != WIDTHS[kind]:
            got = f"{config['in_channels']} features per atom"
            raise InputError(name, got=got, expected=f"{WIDTHS[kind]}, as the featurizer {kind} makes")
        if len(labels) != config["out_channels"]:
            expected = f"{config['out_channels']}, one for each class"
            raise InputError(f"{name}: labels", got=f"{len(labels)} labels", expected=expected)
        if average is not None and len(average) != WIDTHS[kind]:
            expected = f"{WIDTHS[kind]}, one for each feature"
            raise InputError(f"{name}: average", got=f"{len(average)} numbers", expected=expected)
        network = network.double().eval()
        pair = Data(x=torch.ones(2, WIDTHS[kind]).double(), edge_index=torch.tensor([[0, 1], [1, 0]]))
        known = None if elements is None else tuple(elements)
        usual = None if average is None else tuple(average)
        return cls(name, network, tuple(labels), kind, known, certify(network, pair), usual, sha256)

    @property
    def baseline(self) -> str:
        """Where the path starts unless one says otherwise: "average" if the model knows it, else "zero".

        >>> MoleculeModel.of(PolyGIN(9, 2), name="toy", labels=["no", "yes"], featurizer="moleculenet").baseline
        'zero'
        """
        return "zero" if self.average is None else "average"

    def target(self, wanted: str | int | None) -> int | None:
        """A class by its label or its number; None stands for each molecule's predicted class.

        >>> model = MoleculeModel.of(PolyGIN(9, 2), name="toy", labels=["no", "yes"], featurizer="moleculenet")
        >>> model.target("yes"), model.target("0"), model.target(None)
        (1, 0, None)
        """
        if wanted is None:
            return None
        named = {label.lower(): k for k, label in enumerate(self.labels)}
        numbered = {str(k): k for k in range(len(self.labels))}
        found = named.get(str(wanted).strip().lower(), numbered.get(str(wanted).strip()))
        if found is None:
            valid = ", ".join(f"{k} or {label!r}" for k, label in enumerate(self.labels))
            raise TargetError("target", got=repr(wanted), expected=f"a class: {valid}")
        return found


def open_model(name: str | os.PathLike[str]) -> MoleculeModel:
    """The model of this name in the zoo, else the one saved in this folder.

    >>> open_model("ba-shapes")
    Traceback (most recent call last):
        ...
    apexgnn.errors.InputError: ba-shapes: got no molecules: a node task; expected a model that classifies \
molecules. To fix: explain graphs of any kind with apexgnn.attribute(model, data).
    """
    shelved, text = str(name) in zoo.names(), str(name)
    if text in names() and not describe(text).featurizer:
        raise not_molecular(text, f"a {describe(text).task} task")
    if not shelved and not Path(name).is_dir():
        raise _unknown(text)
    folder = zoo.folder(text) if shelved else Path(name)
    about = read_checkpoint(folder)
    facts = _facts(text, about)
    return MoleculeModel.of(load(folder), name=text, sha256=about.sha256, **facts)


def not_molecular(name: str, got: str) -> InputError:
    """What is said of a model that takes no molecules, or does not classify them."""
    return InputError(
        name,
        got=f"no molecules: {got}",
        expected="a model that classifies molecules",
        fix="explain graphs of any kind with apexgnn.attribute(model, data)",
    )


def _facts(name: str, about: Checkpoint) -> dict[str, Any]:
    """Labels, featurizer, elements and average atom, from the metadata or from the data set that it names."""
    trained = about.metadata.get("outcome")
    dataset = trained.get("dataset") if isinstance(trained, dict) else about.metadata.get("dataset")
    spec = describe(dataset) if dataset in names() else None
    if spec is not None and (spec.task != "graph" or not spec.featurizer):
        what = f"{spec.name}, a {spec.task} task" if spec.task != "graph" else f"trained on {spec.name}"
        raise not_molecular(name, what)
    if about.metadata.get("task", "graph") != "graph":
        raise not_molecular(name, f"a {about.metadata['task']} task")
    known: dict[str, Any] = {"featurizer": None, "labels": None, "elements": None}
    if spec is not None:
        known = {"featurizer": spec.featurizer, "labels": spec.labels, "elements": spec.elements}
    known |= {key: about.metadata[key] for key in (*known, "average") if about.metadata.get(key) is not None}
    if not isinstance(known["featurizer"], str) or not _all(str, known["labels"]):
        raise CheckpointError(
            f"{name}: metadata",
            got="no featurizer and labels",
            expected="those of a model of molecules",
            fix='save it with metadata={"featurizer": "moleculenet", "labels": [one for each class]}',
        )
    for key, kind, what in (("elements", str, "symbols"), ("average", float, "numbers")):
        if known.get(key) is not None and not _all(kind, known[key]):
            raise CheckpointError(
                f"{name}: metadata.{key}", got=repr(known[key]), expected=f"a list of {what}"
            )
    return known


def _all(kind: type, values: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, kind) for value in values)


def _unknown(name: str) -> InputError:
    here = ", ".join(map(repr, zoo.names())) or "none"
    fix = f"train it: apexgnn train {name} --out {name}" if name in names() else ""
    expected = f"a model of the zoo ({here}) or a folder of a saved model"
    return InputError("model", got=repr(name), expected=expected, fix=fix)
