"""`apexgnn certify MODEL`: the certificate of a saved model, or what stands in its way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Data

import apexgnn
from apexgnn import zoo
from apexgnn.errors import GraphError
from apexgnn.nn import GIN, PolyGIN, load, read_checkpoint


def certify(
    model: Annotated[
        str, typer.Argument(help="A model of the zoo, or the folder of one saved by apexgnn.nn.save.")
    ],
    graph: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help='Graph as JSON, {"x": [[…]], "edge_index": [[…], […]]}; without it, a path of three nodes.',
        ),
    ] = None,
) -> None:
    """Print the certificate of a saved model.

    It holds for every graph: PolyGIN runs through the same operations whatever the graph is.
    """
    folder = zoo.folder(model) if model in zoo.names() else Path(model)
    network, about = load(folder), read_checkpoint(folder)
    data = example(network) if graph is None else read_graph(graph, network)
    index = 0 if network.config["task"] == "node" else None
    certificate = apexgnn.certify(network, data, index=index)
    console = Console()
    console.print(f"{about.model_class} in {model}, SHA-256 {about.sha256[:12]}…", soft_wrap=True)
    show(console, certificate)


def show(console: Console, certificate: apexgnn.Certificate, *, rising: bool = False) -> None:
    """The certificate as a table and a sentence."""
    console.print("[bold]Degree in τ along the path, module by module[/]")
    console.print(table(certificate, rising=rising))
    console.print(summary(certificate), soft_wrap=True)


def table(certificate: apexgnn.Certificate, *, rising: bool = False) -> Table:
    """The trace, one row per module; with `rising`, only those that raise the degree."""
    drawn = Table()
    drawn.add_column("module")
    drawn.add_column("kind")
    drawn.add_column("in", justify="right")
    drawn.add_column("out", justify="right")
    for row in certificate.trace:
        if rising and row.degree_out == row.degree_in:
            continue
        style = "bold" if row.degree_out > row.degree_in else ""
        drawn.add_row(row.module or "(model)", row.kind, str(row.degree_in), str(row.degree_out), style=style)
    return drawn


def summary(certificate: apexgnn.Certificate) -> str:
    """What follows from the trace, in one line."""
    plural = "" if certificate.points == 1 else "s"
    return (
        f"The score has degree {certificate.degree}: {certificate.points} Gauss–Legendre point{plural} "
        "integrate its gradient without error."
    )


def example(network: PolyGIN | GIN) -> Data:
    """A path of three nodes with the model's width and dtype."""
    x = torch.ones(3, network.config["in_channels"], dtype=next(network.parameters()).dtype)
    return Data(x=x, edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))


def read_graph(path: Path, network: PolyGIN | GIN) -> Data:
    """A graph from JSON, in the model's dtype; the library checks the rest."""
    try:
        fields: Any = json.loads(path.read_bytes())
        x = torch.tensor(fields["x"], dtype=next(network.parameters()).dtype)
        edge_index = torch.tensor(fields["edge_index"], dtype=torch.long).reshape(2, -1)
    except OSError as error:
        raise GraphError(str(path), got=str(error.strerror), expected="a readable file") from error
    except (ValueError, KeyError, TypeError, RuntimeError, RecursionError, OverflowError) as error:
        expected = '{"x": [[numbers]], "edge_index": [[sources], [targets]]}'
        raise GraphError(str(path), got=f"{type(error).__name__}: {error}", expected=expected) from error
    return Data(x=x, edge_index=edge_index)
