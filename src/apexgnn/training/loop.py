"""The training loop: a model, a data set as a quotient, a split, a recipe, a seed.

Step k of epoch e takes the next `batch_size` graphs of a permutation drawn from (seed, e); dropout in step k is drawn
from (seed, k). So a run is a function of its arguments, and one that was killed and resumed ends at the same bits.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import dropout

from apexgnn.data.splits import Split
from apexgnn.errors import TrainingError
from apexgnn.nn import GIN, PolyGIN
from apexgnn.training.batch_norm import add_batch_norm, fold_batch_norm
from apexgnn.training.evaluate import evaluate
from apexgnn.training.fade import objective
from apexgnn.training.forward import products
from apexgnn.training.prepare import Coordinates, absorb, calibrate
from apexgnn.training.quotient import Ints, Quotient
from apexgnn.training.recipes import Recipe
from apexgnn.training.state import STATE, Epoch, Keeping, Progress, restore_state, save_state

PREPARATION_BATCH = 512
DRAWS = 1 << 32  # step k of the run with seed s draws its dropout from the generator seeded s·2³² + k
SPIKE = 100.0  # a best validation loss above this is no learning: guessing has log(classes)


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """What a run gave.

    Attributes:
        model: the validation-best model, in eval mode; it takes features as they are.
        best: the epoch it comes from.
        history: every epoch.
        seconds: processor time of the run, resumed parts included, per thread.
    """

    model: PolyGIN | GIN
    best: Epoch
    history: tuple[Epoch, ...]
    seconds: float


def fit(
    model: PolyGIN | GIN,
    quotient: Quotient,
    split: Split,
    recipe: Recipe,
    *,
    seed: int,
    keeping: Keeping | None = None,
    report: Callable[[Epoch], None] | None = None,
) -> Trained:
    """Train `model` from a fresh start and give back its validation-best weights in a new model.

    Args:
        model: says the architecture; its parameters are drawn anew from the seed and trained.
        quotient: the data, for as many layers as the model has.
        split: which outputs train and which validate; the test part is not touched.
        recipe: how.
        seed: decides everything random.
        keeping: resume from this folder if it holds this run, and write its state there.
        report: called after every epoch.

    >>> from apexgnn.data import load
    >>> data = load("ba-shapes")
    >>> model = PolyGIN(10, 4, hidden_channels=8, task="node")
    >>> mine = Recipe("mine", epochs=2, learning_rate=1e-3, prepared=True)
    >>> run = fit(model, Quotient.of(data.graphs, task="node"), data.split(), mine, seed=0)
    >>> len(run.history), run.best in run.history
    (2, True)
    """
    with torch.random.fork_rng(devices=[]), products(recipe.products):
        run = _Run(model, quotient, split, recipe, seed)
        run.restore(keeping)
        for row in run.epochs(keeping):
            if report:
                report(row)
        return run.finish()


class _Run:
    """The moving parts of one run."""

    def __init__(
        self, model: PolyGIN | GIN, quotient: Quotient, split: Split, recipe: Recipe, seed: int
    ) -> None:
        self.model, self.recipe, self.seed = model, recipe, seed
        self.train, self.val = split.train.numpy(), split.val.numpy()
        self.size = len(self.train) if model.task == "node" else recipe.batch_size
        self.steps_per_epoch = math.ceil(len(self.train) / self.size)
        self.identity = {
            "model": type(model).__name__,
            "config": model.config,
            "recipe": recipe.settings(),
            "seed": seed,
            "split": [split.kind, split.seed, len(self.train), len(self.val)],
            "features": [len(quotient.features), float(quotient.features.double().sum())],
        }
        torch.manual_seed(seed)
        model.reset_parameters()
        self.normed = recipe.batch_norm and isinstance(model, PolyGIN)
        if self.normed:
            add_batch_norm(cast(PolyGIN, model))
        model.train()
        self.coordinates: Coordinates | None = None
        self.quotient = self._prepared(quotient) if recipe.prepared else quotient
        self.whole = self.quotient.batch(self.train) if model.task == "node" else None
        self.parameters: list[Tensor] = list(model.parameters())
        self.optimiser = torch.optim.Adam(
            self.parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
        )
        self.average = copy.deepcopy(model) if recipe.average else model
        self.best_model = copy.deepcopy(model)
        self.progress = Progress()

    def _prepared(self, quotient: Quotient) -> Quotient:
        chosen = np.random.default_rng(self.seed).permutation(self.train)[:PREPARATION_BATCH]
        self.coordinates = Coordinates.of(quotient.batch(chosen).features, each=self.recipe.scale_each)
        moved = self.coordinates.apply(quotient)
        if isinstance(self.model, PolyGIN) and not self.normed:
            calibrate(self.model, moved.batch(chosen))
        return moved

    def epochs(self, keeping: Keeping | None) -> Iterator[Epoch]:
        """Run what is left, one row per epoch."""
        total = self.steps_per_epoch * self.recipe.epochs
        clock, written = time.process_time(), time.monotonic()
        while self.progress.step < total and not self._tired():
            epoch, position = divmod(self.progress.step, self.steps_per_epoch)
            order = np.random.default_rng([self.seed, epoch]).permutation(self.train)
            for k in range(position, self.steps_per_epoch):
                self._step(order[k * self.size : (k + 1) * self.size], total)
                if keeping and time.monotonic() - written >= keeping.every and k + 1 < self.steps_per_epoch:
                    clock, written = self._tick(clock), time.monotonic()
                    self.keep(keeping)
            row = self._close(epoch)
            clock = self._tick(clock)
            if keeping and (time.monotonic() - written >= keeping.every or self.progress.step == total):
                written = time.monotonic()
                self.keep(keeping)
            yield row

    def _step(self, chosen: Ints, total: int) -> None:
        progress, recipe = self.progress, self.recipe
        torch.manual_seed(self.seed * DRAWS + progress.step)
        batch = self.whole or self.quotient.batch(chosen)
        if recipe.feature_dropout:
            batch = replace(batch, features=dropout(batch.features, recipe.feature_dropout))
        for group in self.optimiser.param_groups:
            group["lr"] = recipe.rate(progress.step / total)
        loss = objective(self.model, batch, recipe, zero=self.coordinates.zero if self.coordinates else 0.0)
        self.optimiser.zero_grad()
        torch.autograd.backward(loss)
        if recipe.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters, recipe.clip)
        self.optimiser.step()
        progress.step += 1
        if self.average is not self.model:
            decay = min(recipe.average, (1 + progress.step) / (10 + progress.step))
            pairs = zip(self.average.state_dict().values(), self.model.state_dict().values(), strict=True)
            mine, new = zip(*(pair for pair in pairs if pair[0].is_floating_point()), strict=True)
            torch._foreach_lerp_(mine, new, 1 - decay)
        progress.loss_sum += float(loss.detach()) * len(batch.labels)
        if not math.isfinite(progress.loss_sum):
            raise self._diverged(f"the loss of step {progress.step} is {float(loss.detach())}")

    def _close(self, epoch: int) -> Epoch:
        """Validate at the end of an epoch and keep the best."""
        progress, recipe = self.progress, self.recipe
        accuracy, loss = evaluate(self.average, self.quotient, self.val)
        rate = self.optimiser.param_groups[0]["lr"]
        row = Epoch(epoch + 1, progress.loss_sum / len(self.train), loss, accuracy, rate)
        progress.history.append(row)
        progress.loss_sum = 0.0
        if epoch + 1 > recipe.settle * recipe.epochs and (
            progress.best is None or _rank(row) > _rank(progress.best)
        ):
            progress.best = row
            self.best_model.load_state_dict(self.average.state_dict())
        return row

    def _tired(self) -> bool:
        progress, patience = self.progress, self.recipe.patience
        if progress.best is None or patience is None:
            return False
        return len(progress.history) - progress.best.epoch >= patience

    def _diverged(self, what: str) -> TrainingError:
        return TrainingError(
            f"Training diverged: {what} (recipe {self.recipe.name!r}, seed {self.seed}). To fix: lower the learning "
            "rate, bound the gradient (clip=1.0), start prepared (prepared=True), or use recipe 'fast'."
        )

    def finish(self) -> Trained:
        """The best model, taking features as they are."""
        progress = self.progress
        if progress.best is None or not progress.best.validation_loss < SPIKE:
            raise self._diverged("no epoch has a validation loss that would pass for learning")
        if self.normed:
            fold_batch_norm(cast(PolyGIN, self.best_model))
        if self.coordinates is not None:
            absorb(self.best_model, self.coordinates)
        return Trained(self.best_model.eval(), progress.best, tuple(progress.history), progress.seconds)

    def _tensors(self) -> dict[str, Tensor]:
        """All tensors of the state, by name; Adam's appear after its first step."""
        models = {"model": self.model, "best": self.best_model}
        if self.average is not self.model:
            models["average"] = self.average
        tensors = {f"{name}.{k}": v for name, model in models.items() for k, v in model.state_dict().items()}
        for i, parameter in enumerate(self.parameters):
            for key, value in self.optimiser.state[parameter].items():
                tensors[f"adam.{i}.{key}"] = value
        return tensors

    def keep(self, keeping: Keeping) -> None:
        """Write the state."""
        keeping.folder.mkdir(parents=True, exist_ok=True)
        save_state(keeping.folder / STATE, self._tensors(), self.progress, self.identity)

    def restore(self, keeping: Keeping | None) -> None:
        """Take up the state of this run, where there is one."""
        if keeping is None or not (keeping.folder / STATE).exists():
            return
        for parameter in self.parameters:
            zeros = {key: torch.zeros_like(parameter) for key in ("exp_avg", "exp_avg_sq")}
            self.optimiser.state[parameter] = {"step": torch.zeros(()), **zeros}
        self.progress = restore_state(keeping.folder / STATE, self._tensors(), self.identity)

    def _tick(self, since: float) -> float:
        now = time.process_time()
        self.progress.seconds += (now - since) / torch.get_num_threads()
        return now


def _rank(row: Epoch) -> tuple[float, float]:
    """Higher validation accuracy is better; among equals, lower loss."""
    return row.validation_accuracy, -row.validation_loss
