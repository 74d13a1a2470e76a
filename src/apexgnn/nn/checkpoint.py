"""A trained model as a folder of two files, without pickle.

    model-<hash>.safetensors   the weights, named by the first 12 digits of their SHA-256
    config.json                class, configuration, the weights' file with its full SHA-256, metadata

`config.json` is written last and in one rename, so it is the moment of saving: a crash before it leaves the
earlier model as it was, and of two writers one wins whole.

Nothing in the folder is trusted: the configuration is checked against the class's constructor, the weights
against their SHA-256 (safetensors does not notice a flipped bit), then against the shapes that the model has
on the meta device, so that a forged width allocates nothing. What `load` would refuse, `save` does not write.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from apexgnn.errors import CheckpointError, InputError
from apexgnn.files import write_atomically
from apexgnn.nn.manifest import Checkpoint, check_metadata, check_names, read_manifest, require
from apexgnn.nn.models import GIN, PolyGIN

CLASSES: dict[str, Callable[..., PolyGIN | GIN]] = {"PolyGIN": PolyGIN, "GIN": GIN}
DTYPES = (torch.float32, torch.float64)
PICKLES = {".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt"}


def save(
    model: PolyGIN | GIN, folder: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None
) -> Checkpoint:
    """Write a PolyGIN or GIN to a folder, which is made if need be.

    Args:
        model: to be saved, float32 or float64; it is not changed.
        folder: where to; a model saved there before is replaced.
        metadata: anything that JSON gives back unchanged.

    >>> import tempfile
    >>> model = PolyGIN(3, 2, hidden_channels=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save(model, folder, metadata={"classes": ["inactive", "active"]})
    ...     again, about = load(folder), read_checkpoint(folder)
    >>> about.metadata["classes"], torch.equal(again.head[3].weight, model.head[3].weight)
    (['inactive', 'active'], True)
    """
    folder, name = Path(folder), type(model).__name__
    if CLASSES.get(name) is not type(model):
        raise CheckpointError("model", got=f"a {name}", expected="a PolyGIN or a GIN")
    about = check_metadata(metadata or {})
    state = {key: value.detach().cpu().contiguous().clone() for key, value in model.state_dict().items()}
    _check_weights("model", state, _skeleton(name, model.config, "model.config", tensors=len(state)))
    data = safetensors.torch.save(state)
    digest = hashlib.sha256(data).hexdigest()
    checkpoint = Checkpoint(name, dict(model.config), f"model-{digest[:12]}.safetensors", digest, about)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        earlier = None
        with contextlib.suppress(CheckpointError):
            earlier = read_checkpoint(folder).weights
        write_atomically(folder / checkpoint.weights, data)
        write_atomically(folder / "config.json", checkpoint.to_json())
        if earlier is not None and earlier != checkpoint.weights:
            (folder / earlier).unlink(missing_ok=True)
    except OSError as error:
        raise CheckpointError(
            str(folder), got=str(error.strerror), expected="a folder that can be written"
        ) from error
    return checkpoint


def load(folder: str | os.PathLike[str]) -> PolyGIN | GIN:
    """Read a model that `save` wrote: on the CPU, in its own dtype, in eval mode.

    >>> load("model.pt")
    Traceback (most recent call last):
        ...
    apexgnn.errors.CheckpointError: model.pt: got a .pt file; expected a folder written by apexgnn.nn.save. \
To fix: pickled models are never read; load its state_dict yourself and save the model anew.
    """
    folder = Path(folder)
    checkpoint = read_checkpoint(folder)
    path = folder / checkpoint.weights
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(str(path), got=str(error.strerror), expected="the weights' file") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != checkpoint.sha256:
        raise CheckpointError(
            str(path),
            got=f"SHA-256 {digest[:12]}… over {len(data)} bytes",
            expected=f"SHA-256 {checkpoint.sha256[:12]}…, as config.json has it",
            fix="the file is truncated, corrupted or of another model; copy or download it again",
        )
    try:
        state = safetensors.torch.load(data)
    except safetensors.SafetensorError as error:
        raise CheckpointError(str(path), got=str(error), expected="a safetensors file") from error
    model = _skeleton(checkpoint.model_class, checkpoint.config, "config", tensors=len(state))
    _check_weights(str(path), state, model)
    model.load_state_dict(state, assign=True)
    return model.eval()


def read_checkpoint(folder: str | os.PathLike[str]) -> Checkpoint:
    """What a saved model says about itself, without reading its weights.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save(GIN(3, 2, hidden_channels=4), folder)
    ...     read_checkpoint(folder).config["in_channels"]
    3
    """
    folder = Path(folder)
    if not folder.is_dir():
        pickled = folder.suffix.lower() in PICKLES
        got = f"a {folder.suffix} file" if pickled else "a file" if folder.exists() else "no such folder"
        fix = "pickled models are never read; load its state_dict yourself and save the model anew"
        raise CheckpointError(
            str(folder), got=got, expected="a folder written by apexgnn.nn.save", fix=fix if pickled else ""
        )
    return read_manifest(folder / "config.json")


def _skeleton(name: str, config: Mapping[str, Any], where: str, *, tensors: int) -> PolyGIN | GIN:
    """The model on the meta device: all its shapes and no memory.

    A layer has at least one tensor, so that no honest num_layers is above the number of tensors in the file.
    """
    constructor = CLASSES[name].__init__
    arguments = {k: v for k, v in inspect.signature(constructor).parameters.items() if k != "self"}
    needed = [key for key, argument in arguments.items() if argument.default is argument.empty]
    check_names(where, config, required=needed, known=arguments)
    hints = get_type_hints(constructor)
    for key, value in config.items():
        place, hint = f"{where}.{key}", hints[key]
        right = isinstance(value, hint | int if hint is float else hint)
        right = right and (hint is bool or not isinstance(value, bool))
        require(right, place, got=value, expected=getattr(hint, "__name__", str(hint)))
        if hint is float:
            require(abs(value) <= sys.float_info.max, place, got=value, expected="a finite number")
        if hint is int:
            most = tensors if key == "num_layers" else 2**31
            require(0 <= value <= most, place, got=value, expected=f"an integer from 0 to {most}")
    try:
        with torch.device("meta"):
            return CLASSES[name](**config)
    except InputError as error:
        raise CheckpointError(f"{where}.{error.where}", got=error.got, expected=error.expected) from error
    except (ValueError, RuntimeError) as error:
        raise CheckpointError(
            where, got=f"values refused by {name} ({error})", expected="valid values"
        ) from error


def _check_weights(where: str, state: Mapping[str, Tensor], model: PolyGIN | GIN) -> None:
    """The tensors are the model's: names, shapes, one floating dtype, finite."""
    shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    check_names(where, state, required=shapes, known=shapes)
    dtype = next((state[key].dtype for key in shapes if state[key].dtype in DTYPES), None)
    for key, expected in shapes.items():
        value, place = state[key], f"{where}: {key}"
        shape = tuple(value.shape)
        if shape != expected:
            raise CheckpointError(
                place, got=f"shape {shape}", expected=f"{expected}, as the configuration says"
            )
        if value.dtype is not dtype:
            raise CheckpointError(place, got=str(value.dtype), expected="all float32 or all float64")
        if not bool(torch.isfinite(value).all()):
            raise CheckpointError(place, got="NaN or infinite weights", expected="finite weights")
