"""One vector per token from a frozen transformer.

An encoder cuts a sentence into word pieces, each with its characters, and gives each piece a last hidden
state. A token with the characters [s, e) gets the mean over the pieces that overlap them; a token that none
overlaps (bare whitespace) gets zeros.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from apexgnn.choice import Choice
from apexgnn.errors import DataError, MissingDependencyError

ENCODER = "bert-base-uncased"


class Precision(Choice):
    """Of the encoder's matrix products."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


class Encoder:
    """A frozen transformer: sentences of equal piece count in, last hidden states out.

    Args:
        name: a model on the hub, or a folder.
        precision: "float32", or "bfloat16" for matrix products in bfloat16 (measured with a 768-wide MPNet on a
            CPU that has them: 3.3 × as fast; cosine to float32 above 0.9998 for all but 1 of 1,900 phrases).
    """

    def __init__(self, name: str = ENCODER, precision: str = "float32") -> None:
        self.precision = Precision(precision)
        transformers = require("transformers")
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(name)
            self.model = transformers.AutoModel.from_pretrained(name).float().eval()
        except (OSError, ValueError) as error:
            raise DataError(
                "encoder",
                got=f"{name!r} ({error})",
                expected="a model on the hub or a folder that holds one",
                fix="connect to the network, or name a folder with --encoder",
            ) from error
        self.width = int(self.model.config.hidden_size)
        self.limit = int(self.model.config.max_position_embeddings) - 2
        self.description = {
            "encoder": Path(name).name,
            "encoder_type": type(self.model).__name__,
            "encoder_sha256": digest(self.model.state_dict()),
            "precision": str(self.precision),
            "transformers": transformers.__version__,
            "torch": torch.__version__,
        }

    def pieces(self, sentences: Sequence[str]) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
        """Ids of the word pieces, and the characters [start, end) of each (special tokens are empty)."""
        encoded = self.tokenizer(list(sentences), return_offsets_mapping=True)
        longest = max(map(len, encoded["input_ids"]))
        if longest > self.limit:
            raise DataError(
                "sentences",
                got=f"one of {longest} word pieces",
                expected=f"at most {self.limit}",
                fix="shorten it, or use an encoder with a longer context",
            )
        return encoded["input_ids"], encoded["offset_mapping"]

    def hidden(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Last hidden states [B, L, F] of B sentences of L pieces each."""
        block = torch.tensor(ids)
        cast = (
            torch.autocast("cpu", dtype=torch.bfloat16)
            if self.precision is Precision.BFLOAT16
            else nullcontext()
        )
        with torch.inference_mode(), cast:
            output = self.model(input_ids=block, attention_mask=torch.ones_like(block))
        states: Tensor = output.last_hidden_state
        return states.float()


def pool(hidden: Tensor, offsets: Sequence[tuple[int, int]], spans: np.ndarray) -> tuple[Tensor, int]:
    """Mean state over the pieces that overlap each token; and the number of tokens that none overlaps.

    Args:
        hidden: [L, F], one row per piece.
        offsets: characters of each piece, in order; empty for special tokens.
        spans: [n, 2], characters of each token.

    >>> states = torch.tensor([[9.0], [1.0], [3.0], [5.0], [9.0]])
    >>> pool(states, [(0, 0), (0, 2), (2, 4), (5, 6), (0, 0)], np.array([[0, 4], [5, 6], [6, 7]]))
    (tensor([[2.],
            [5.],
            [0.]]), 1)
    """
    real = np.array([(k, a, b) for k, (a, b) in enumerate(offsets) if b > a], dtype=np.int64).reshape(-1, 3)
    first = np.searchsorted(real[:, 2], spans[:, 0], side="right")
    last = np.searchsorted(real[:, 1], spans[:, 1], side="left")
    sums = torch.cat([hidden.new_zeros(1, hidden.size(1)), hidden[real[:, 0]].double().cumsum(0)])
    count = torch.from_numpy(np.maximum(last - first, 0))
    total = (sums[last] - sums[first]) * (count > 0).unsqueeze(1)
    return (total / count.clamp(min=1).unsqueeze(1)).to(hidden.dtype), int((count == 0).sum())


def digest(state: dict[str, Tensor]) -> str:
    """SHA-256 over all weights, so that a result names the encoder whatever its folder was called."""
    digest = hashlib.sha256()
    for name in sorted(state):
        digest.update(name.encode())
        digest.update(state[name].contiguous().numpy().tobytes())
    return digest.hexdigest()


def require(package: str) -> Any:
    """Import an optional package of the `text` extra."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingDependencyError(
            f"{package} is needed to turn sentences into graphs. To fix: pip install 'apexgnn[text]'"
        ) from error
