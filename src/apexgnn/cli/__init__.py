"""The command line: one file per command, loaded when it is called, so that help does not wait for torch.

To add a command, write `cli/<name>.py` with a function `<name>`, or an `app = typer.Typer()` where it has
subcommands, and give it a line in `COMMANDS`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from apexgnn import __version__
from apexgnn.errors import ApexError

COMMANDS = {
    "demo": "Explain molecules with a shipped model; train a small one; certify, explain, draw.",
    "explain": "Predict molecules and attribute the prediction to their atoms, exactly.",
    "certify": "Print the certificate of a saved model.",
    "compare": "All explainers on one graph or on a data set, side by side.",
    "data": "List data sets; make one ready.",
    "train": "Train PolyGIN or GIN on a data set.",
    "reproduce": "Make the tables and figures of the paper anew.",
    "benchmark": "Measure speed, rounding and memory on this machine.",
}
REFUSED = 2  # the exit code of every error that is reported in words


class _Later(TyperCommand):
    """A command that is imported when its arguments are parsed; until then its name and help will do."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        module = import_module(f"apexgnn.cli.{self.name}")
        own = getattr(module, "app", None)
        if own is None:
            own = typer.Typer(rich_markup_mode=None, add_completion=False)
            own.command()(getattr(module, str(self.name)))
        return typer.main.get_command(own).make_context(info_name, args, parent, **extra)


class _Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: _Later(name, help=text) for name, text in COMMANDS.items()}


app = typer.Typer(cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"apexgnn {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Exact, certified attributions for graph neural networks."""


def main() -> None:
    """Run the command line; every error made on purpose becomes one red message and exit code 2."""
    try:
        app()
    except ApexError as error:
        Console(stderr=True).print(Text(f"error: {error}", style="red"), soft_wrap=True)
        sys.exit(REFUSED)
