"""Trained PolyGIN models that ship: one per data set, the validation-best of its seeds.

>>> model = load("mutagenicity")
>>> model.config["in_channels"], model.training
(14, False)
"""

from __future__ import annotations

from pathlib import Path

from apexgnn.errors import InputError
from apexgnn.nn import Checkpoint, PolyGIN, read_checkpoint
from apexgnn.nn import load as load_folder

SHELF = Path(__file__).parent

__all__ = ["about", "card", "folder", "load", "names"]


def names() -> tuple[str, ...]:
    """The models on the shelf, by the data set that they were trained on.

    >>> "mutagenicity" in names()
    True
    """
    return tuple(sorted(path.parent.name for path in SHELF.glob("*/config.json")))


def folder(name: str) -> Path:
    """Where a model lies: `config.json`, the weights, `card.md`.

    >>> folder("nothing")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    apexgnn.errors.InputError: name: got 'nothing'; expected one of ...
    """
    if name not in names():
        raise InputError("name", got=repr(name), expected="one of " + ", ".join(map(repr, names())))
    return SHELF / name


def load(name: str) -> PolyGIN:
    """The model of this name, in eval mode, its weights checked against their SHA-256.

    >>> sum(parameter.numel() for parameter in load("mutagenicity").parameters())
    547806
    """
    model = load_folder(folder(name))
    assert isinstance(model, PolyGIN)
    return model


def about(name: str) -> Checkpoint:
    """What the model says about itself; `.metadata` has its labels, its data and its recorded accuracy.

    >>> about("mutagenicity").metadata["labels"]
    ['mutagen', 'nonmutagen']
    """
    return read_checkpoint(folder(name))


def card(name: str) -> str:
    """The model card, Markdown.

    >>> card("mutagenicity").splitlines()[0]
    '# mutagenicity: PolyGIN'
    """
    return (folder(name) / "card.md").read_text(encoding="utf-8")
