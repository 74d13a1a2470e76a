"""How to train: two recipes for every data set and architecture.

    paper   Adam, weight decay 5·10⁻⁶, batch 32, a constant rate; rates and epochs of the paper's Table 1
    fast    the same architecture at the same parameter count, in a fraction of the epochs

What `fast` adds, all of it outside the architecture:

- *prepared* starts (see `apexgnn.training.prepare`): a polynomial of degree 16 leaves the range where it can
  learn unless every channel starts centred with unit variance;
- for PolyGIN on BA-Shapes, BBBP and BACE, batch norm while training (see `apexgnn.training.batch_norm`);
- for PolyGIN on the molecules, a loss along the path from zero features, so that attributions from zero mean
  something (see `apexgnn.training.fade`);
- a one-cycle learning rate and, for PolyGIN, a bound on the gradient's norm;
- a running average of the weights, which is what is validated and kept;
- only the last part of the cycle offers candidates for the validation-best model (`settle`): early peaks on a
  validation set of 150 graphs are noise;
- an early stop where that part brings nothing better for a while (`patience`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from apexgnn.choice import Choice
from apexgnn.errors import InputError


class Schedule(Choice):
    """How the learning rate moves.

    >>> Schedule("one-cycle").name
    'ONE_CYCLE'
    """

    CONSTANT = "constant"
    ONE_CYCLE = "one-cycle"


class Products(Choice):
    """How the factors of matrix products are held while training; sums and weights are float32 either way.

    >>> [str(kind) for kind in Products]
    ['float32', 'bfloat16']
    """

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides a training run, beside the data, the architecture and the seed.

    Attributes:
        name: of the recipe.
        epochs: at most.
        learning_rate: constant, or the peak of the cycle.
        batch_size: graphs per step; a node task takes all its nodes at once.
        weight_decay: as Adam's L2 term.
        schedule: "constant" or "one-cycle".
        clip: bound on the gradient's norm, or None.
        prepared: centre and scale every channel before the first step.
        scale_each: scale every feature by itself, not all by one number.
        batch_norm: normalise PolyGIN's channels at every step, folded away after training.
        fade: weight of the loss along the path from zero features (see `apexgnn.training.fade`).
        label_smoothing: how much of each label is spread over the classes.
        theta_init: where PolyGIN's θ starts.
        dropout: in the head.
        feature_dropout: of the first layer's aggregated features.
        average: decay of the running average of the weights; 0 keeps none.
        settle: the fraction of the epochs after which a model may be the validation-best.
        products: "float32" or "bfloat16", the factors of matrix products while training.
        patience: stop after so many epochs without a better model, or None.

    >>> Recipe("mine", epochs=10, learning_rate=0.0)
    Traceback (most recent call last):
        ...
    apexgnn.errors.InputError: learning_rate: got 0.0; expected a number above 0.
    """

    name: str
    epochs: int
    learning_rate: float
    batch_size: int = 32
    weight_decay: float = 5e-6
    schedule: str = "constant"
    clip: float | None = None
    prepared: bool = False
    scale_each: bool = False
    batch_norm: bool = False
    fade: float = 0.0
    label_smoothing: float = 0.0
    theta_init: float = 0.1
    dropout: float = 0.5
    feature_dropout: float = 0.0
    average: float = 0.0
    settle: float = 0.0
    products: str = "float32"
    patience: int | None = None

    def __post_init__(self) -> None:
        Schedule(self.schedule)
        Products(self.products)
        for field in ("epochs", "learning_rate", "batch_size"):
            if not getattr(self, field) > 0:
                raise InputError(field, got=repr(getattr(self, field)), expected="a number above 0")
        for field in ("dropout", "feature_dropout", "label_smoothing", "average", "settle"):
            if not 0 <= getattr(self, field) < 1:
                raise InputError(field, got=repr(getattr(self, field)), expected="a number from 0 to below 1")

    def settings(self) -> dict[str, Any]:
        """What differs from the defaults, which says the same recipe also when defaults are added later.

        >>> Recipe("mine", epochs=10, learning_rate=0.1, clip=1.0).settings()
        {'name': 'mine', 'epochs': 10, 'learning_rate': 0.1, 'clip': 1.0}
        """
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }

    def rate(self, done: float) -> float:
        """The learning rate when the fraction `done` of the run is over.

        >>> [round(Recipe("r", 1, 1.0, schedule="one-cycle").rate(t), 2) for t in (0, 0.2, 0.6, 1)]
        [0.04, 1.0, 0.5, 0.0]
        """
        if self.schedule == Schedule.CONSTANT:
            return self.learning_rate
        if done < WARM:
            return self.learning_rate * (LOW + (1 - LOW) * _half_cosine(1 - done / WARM))
        return self.learning_rate * _half_cosine((done - WARM) / (1 - WARM))


WARM, LOW = 0.2, 0.04  # the cycle's rise takes a fifth of the run and starts at 4 % of its peak


def _half_cosine(t: float) -> float:
    """From 1 at t = 0 down to 0 at t = 1."""
    return 0.5 * (1 + math.cos(math.pi * t))


MODELS = ("polygin", "gin")
KINDS = (*MODELS, "polygin-plus")

_PAPER = {  # (learning rate, epochs) of GIN, of PolyGIN
    "ba-shapes": ((1e-4, 4000), (5e-5, 9000)),
    "bbbp": ((1e-4, 500), (1e-4, 1000)),
    "bace": ((5e-5, 1000), (5e-5, 1000)),
    "graph-sst2": ((1e-3, 20), (1e-3, 20)),
    "mutagenicity": ((1e-4, 100), (1e-3, 800)),
}

_GIN = Recipe(
    "fast", 40, 1e-3, 64, schedule="one-cycle", prepared=True, average=0.99, settle=0.7, patience=12
)
_POLYGIN = replace(_GIN, learning_rate=5e-4, clip=1.0, theta_init=0.5, fade=0.3)
_NORMED = replace(_POLYGIN, batch_norm=True, scale_each=True, weight_decay=3e-4)  # features are quantities
_LONG: dict[str, Any] = {"epochs": 1000, "average": 0.98, "patience": 100}  # one step per epoch
_TEXT: dict[str, Any] = {  # two epochs are enough, and the third overfits
    "epochs": 2,
    "batch_size": 256,
    "feature_dropout": 0.2,
    "settle": 0.0,
    "products": "bfloat16",
}

_FAST = {  # of GIN, of PolyGIN
    "ba-shapes": (
        replace(_GIN, learning_rate=2e-3, **_LONG),
        replace(_POLYGIN, learning_rate=1e-3, batch_norm=True, fade=0.0, **_LONG),  # features τX are data too
    ),
    "bbbp": (_GIN, _NORMED),
    "bace": (_GIN, replace(_NORMED, epochs=80, learning_rate=1e-3, dropout=0.2)),
    "graph-sst2": (replace(_GIN, **_TEXT), replace(_POLYGIN, theta_init=0.1, fade=0.0, **_TEXT)),
    "mutagenicity": (replace(_GIN, dropout=0.2), replace(_POLYGIN, epochs=50, dropout=0.2)),
}


def recipe(name: str, *, dataset: str, model: str) -> Recipe:
    """The recipe of this name for a data set and a model.

    >>> recipe("paper", dataset="bbbp", model="polygin").epochs
    1000
    >>> recipe("slow", dataset="bbbp", model="gin")
    Traceback (most recent call last):
        ...
    apexgnn.errors.InputError: recipe: got 'slow'; expected one of 'paper', 'fast'.
    """
    for where, got, valid in (
        ("recipe", name, ("paper", "fast")),
        ("model", model, KINDS),
        ("dataset", dataset, tuple(_PAPER)),
    ):
        if got not in valid:
            kinds = " (classification)" * (where == "dataset")
            raise InputError(where, got=repr(got), expected="one of " + ", ".join(map(repr, valid)) + kinds)
    column = model != "gin"
    if name == "fast":
        return _FAST[dataset][column]
    learning_rate, epochs = _PAPER[dataset][column]
    return Recipe("paper", epochs, learning_rate)
