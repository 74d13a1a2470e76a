"""Figures to files, whole or not at all, and the same bytes for the same picture."""

from __future__ import annotations

import io
import os
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from apexgnn.errors import InputError
from apexgnn.files import write_atomically

FORMATS = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: int = 200) -> Path:
    """Write a figure as PNG, SVG or PDF, by the ending of the path.

    >>> save_figure(Figure(), "picture.bmp")
    Traceback (most recent call last):
        ...
    apexgnn.errors.InputError: path: got '.bmp'; expected one of '.png', '.svg', '.pdf'.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise InputError("path", got=repr(path.suffix), expected="one of " + ", ".join(map(repr, FORMATS)))
    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "apexgnn"}):
        figure.savefig(content, format=path.suffix[1:], dpi=dpi, metadata=FORMATS[path.suffix])
    write_atomically(path, content.getvalue())
    return path
