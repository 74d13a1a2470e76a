"""`apexgnn demo`: a shipped model of molecules, and one trained on the spot; exact, certified, drawn; in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from apexgnn.cli import demo_houses, demo_molecules
from apexgnn.errors import InputError


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model and the pictures.")] = Path("apexgnn-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Of the model that is trained on the spot.")] = 0,
) -> None:
    """Explain molecules with a shipped model; train a small PolyGIN, certify it, explain a node, draw it."""
    console = Console(highlight=False)
    torch.set_num_threads(1)  # matrices this small are slower when they are shared out
    _make(out)
    console.rule("1. Molecules: a model that ships", align="left")
    demo_molecules.show(console, out)
    console.print()
    console.rule("2. Nodes: a model trained now", align="left")
    demo_houses.show(console, out, seed)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "--out", got=f"{folder} ({error.strerror})", expected="a folder that can be made"
        ) from error
