"""The state of a training run as one file, so that a run that was killed goes on as if nothing had happened.

Everything random in step k is drawn from a generator seeded by (seed, k) or (seed, epoch), so there is no generator
to save: the state is the weights, Adam's two moments, the running average, the best model so far, and a few
numbers. They go into one safetensors file, the numbers as JSON in its header, written in one rename.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from apexgnn.errors import TrainingError
from apexgnn.files import write_atomically

STATE = "state.safetensors"


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where a run leaves its state, and how often.

    Attributes:
        folder: for `state.safetensors`.
        every: seconds between two writes.

    >>> Keeping(Path("runs/mine")).every
    30.0
    """

    folder: Path
    every: float = 30.0


@dataclass(frozen=True, slots=True)
class Epoch:
    """One row of the metrics.

    Attributes:
        epoch: counted from 1.
        train_loss: mean over the epoch's steps, each before it was taken.
        validation_loss, validation_accuracy: of the averaged weights at the epoch's end; accuracy in percent.
        learning_rate: at the epoch's end.

    >>> Epoch(1, 0.6, 0.5, 75.0, 1e-3).validation_accuracy
    75.0
    """

    epoch: int
    train_loss: float
    validation_loss: float
    validation_accuracy: float
    learning_rate: float


@dataclass(slots=True)
class Progress:
    """Where a run stands.

    Attributes:
        step: steps taken.
        loss_sum: Σ loss · outputs over the steps of the unfinished epoch.
        seconds: processor time spent, all threads together divided by their number.
        best: row of the best epoch, None before there is one.
        history: the finished epochs.

    >>> Progress().step
    0
    """

    step: int = 0
    loss_sum: float = 0.0
    seconds: float = 0.0
    best: Epoch | None = None
    history: list[Epoch] = field(default_factory=list)


def save_state(path: Path, tensors: dict[str, Tensor], progress: Progress, run: dict[str, Any]) -> None:
    """Write the state of a run; `run` says which run it is.

    >>> import tempfile
    >>> weight = torch.ones(2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / STATE
    ...     save_state(path, {"weight": weight}, Progress(step=7), {"seed": 0})
    ...     weight.zero_()
    ...     print(restore_state(path, {"weight": weight}, {"seed": 0}).step, weight.tolist())
    tensor([0., 0.])
    7 [1.0, 1.0]
    """
    header = {"run": json.dumps(run), "progress": json.dumps(asdict(progress))}
    write_atomically(path, save({k: v.detach().contiguous() for k, v in tensors.items()}, metadata=header))


@torch.no_grad()
def restore_state(path: Path, tensors: dict[str, Tensor], run: dict[str, Any]) -> Progress:
    """Read a state into `tensors`, in place; refuse that of another run.

    >>> restore_state(Path("nowhere"), {}, {})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    apexgnn.errors.TrainingError: nowhere cannot be resumed (...). To fix: delete it and train anew.
    """
    try:
        with safe_open(os.fspath(path), framework="pt") as file:
            header = file.metadata() or {}
            stored, fields = json.loads(header["run"]), json.loads(header["progress"])
            different = sorted(k for k in {*stored, *run} if stored.get(k) != run.get(k))
            if different:
                what = "; ".join(f"{k} was {stored.get(k)!r} and is {run.get(k)!r}" for k in different)
                raise TrainingError(
                    f"{path} holds another run: {what}. To fix: use another folder, or delete it."
                )
            for key, tensor in tensors.items():
                tensor.copy_(file.get_tensor(key))
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise TrainingError(
            f"{path} cannot be resumed ({error}). To fix: delete it and train anew."
        ) from error
    best, history = fields.pop("best"), fields.pop("history")
    return Progress(**fields, best=best and Epoch(**best), history=[Epoch(**row) for row in history])
