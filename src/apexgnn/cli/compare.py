"""`apexgnn compare MODEL INPUT`: all explainers on one graph or on a data set, side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from torch_geometric.data import Data

from apexgnn import data as datasets
from apexgnn import peers, zoo
from apexgnn.cli import comparison_view as view
from apexgnn.cli.certify import read_graph
from apexgnn.cli.comparison_view import Cases
from apexgnn.cli.explain import TABLES
from apexgnn.errors import InputError
from apexgnn.files import write_atomically
from apexgnn.metrics import Protocol, compare
from apexgnn.neighbourhood import neighbourhood
from apexgnn.nn import GIN, PolyGIN, load
from apexgnn.training.run import SPLIT_SEED

app = typer.Typer(rich_markup_mode=None, add_completion=False)

SLOW = ("subgraphx", "flowx_plus", "flowx_minus")


@app.command("compare")
def command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A model of the zoo, or the folder of one saved by apexgnn.nn.save."
        ),
    ],
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A data set's name, a graph as JSON, a SMILES string, or a table (CSV) with a SMILES column.",
        ),
    ],
    *,
    node: Annotated[
        int | None, typer.Option(help="The node to explain in a JSON graph (node tasks).")
    ] = None,
    count: Annotated[
        int, typer.Option(min=1, help="Test graphs (or nodes) of a data set; rows of a table.")
    ] = 20,
    explainers: Annotated[
        str, typer.Option(help='Names with commas, "all", or "quick": all but subgraphx and learned flowx.')
    ] = "quick",
    masking: Annotated[str, typer.Option(help="permutation, baseline or edges.")] = "permutation",
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the table as JSON too.")] = None,
) -> None:
    """Compare explainers: fidelity (mean over sparsities 0.1 … 0.9), residual, seconds, evaluations."""
    network = load(_folder(model))
    names = _names(explainers)
    cases = _cases(network, source, node=node, count=count)
    labelled = all(graph.y is not None for graph in cases.graphs)
    protocol = Protocol(masking=masking, seed=seed, correct_only=labelled)
    console, status = Console(), Console(stderr=True)
    with status.status("learning") as spinner:
        learned = {
            name: peers.get(name).fit(network, cases.learn, index=cases.learn_nodes, seed=seed)
            for name in names
        }
        rows = compare(
            network,
            cases.graphs,
            explainers=learned,
            index=cases.nodes,
            protocol=protocol,
            seed=seed,
            progress=lambda name: spinner.update(
                f"explaining: {name}, {names.index(name) + 1} of {len(names)}"
            ),
        )
    console.print(view.table(rows, f"{type(network).__name__} on {cases.what}"))
    for note in view.notes(rows, labelled=labelled, learned="pgexplainer" in names, cases=cases):
        console.print(note, soft_wrap=True)
    if out is not None:
        write_atomically(
            out, json.dumps(view.record(rows, cases, protocol), indent=2, ensure_ascii=False) + "\n"
        )


def _folder(model: str) -> Path:
    if model in zoo.names():
        return zoo.folder(model)
    if not os.path.isdir(model):
        expected = "a folder written by apexgnn.nn.save, or one of " + ", ".join(zoo.names())
        raise InputError("MODEL", got=repr(model), expected=expected)
    return Path(model)


def _names(chosen: str) -> list[str]:
    if chosen in ("all", "quick"):
        return [name for name in peers.names() if chosen == "all" or name not in SLOW]
    names = [name.strip() for name in chosen.split(",") if name.strip()]
    if not names:
        raise InputError("--explainers", got=repr(chosen), expected="one of " + ", ".join(peers.names()))
    return list(dict.fromkeys(names))


def _cases(network: PolyGIN | GIN, source: str, *, node: int | None, count: int) -> Cases:
    """Find out what INPUT is."""
    is_table = source.lower().endswith(TABLES)
    is_json = source.endswith(".json") or (os.path.isfile(source) and not is_table)
    if node is not None and not is_json:
        raise InputError("--node", got=str(node), expected="no node: it names one of a JSON graph's")
    if source in datasets.names():
        return _from_dataset(network, source, count=count)
    if is_json:
        graph = read_graph(Path(source), network)
        if (node is None) != (network.task == "graph"):
            expected = (
                "a node to explain" if network.task == "node" else "no node: the model classifies graphs"
            )
            raise InputError("--node", got=str(node), expected=expected)
        nodes = None if node is None else [node]
        return Cases([graph], nodes, [graph], nodes, source)
    featurizers = {9: "moleculenet", 14: "mutagenicity"}
    width = network.config["in_channels"]
    if width not in featurizers or network.task != "graph":
        raise InputError(
            "INPUT", got=repr(source), expected="a data set, a JSON file, or SMILES for a molecule model"
        )
    if is_table:
        return _from_table(network, source, featurizers[width], count=count)
    graph = _cast(datasets.molecule_graph(source, featurizers[width]), next(network.parameters()).dtype)
    return Cases([graph], None, [graph], None, source)


def _from_table(network: PolyGIN | GIN, path: str, featurizer: str, *, count: int) -> Cases:
    """The first molecules of a table; it has no training part, so PGExplainer learns from the same ones."""
    rows = islice(datasets.read_molecules(datasets.read_table(path), featurizer), count)
    read = list(rows)
    graphs = [_cast(graph, next(network.parameters()).dtype) for _, graph in read if graph is not None]
    if not graphs:
        why = read[0][0].error if read else "no rows"
        raise InputError("INPUT", got=f"{path}: {why}", expected="at least one molecule")
    wrong = len(read) - len(graphs)
    what = f"{len(graphs)} molecules of {path}" + (f" ({wrong} rows with errors left out)" if wrong else "")
    return Cases(graphs, None, graphs, None, what)


def _from_dataset(network: PolyGIN | GIN, name: str, *, count: int) -> Cases:
    """Test graphs to explain and training graphs to learn on, by the split that `apexgnn train` uses for all seeds.

    Nodes are explained on their neighbourhoods.
    """
    dataset = datasets.load(name)
    if dataset.task != network.task:
        raise InputError("INPUT", got=f"{name}, a {dataset.task} task", expected=f"a {network.task} task")
    split, dtype = dataset.split(seed=SPLIT_SEED), next(network.parameters()).dtype
    test, train = split.test[:count].tolist(), split.train[:count].tolist()
    what = f"the first {len(test)} of {len(split.test)} test {dataset.task}s of {name}"
    if dataset.task == "graph":
        graphs, learn = ([_cast(dataset[i], dtype) for i in part] for part in (test, train))
        return Cases(graphs, None, learn, None, what)
    whole = _cast(dataset[0], dtype)
    graphs, nodes = _neighbourhoods(network, whole, test)
    learn, learn_nodes = _neighbourhoods(network, whole, train)
    return Cases(graphs, nodes, learn, learn_nodes, what)


def _cast(graph: Data, dtype: object) -> Data:
    graph.x = graph.x.to(dtype)
    return graph


def _neighbourhoods(
    network: PolyGIN | GIN, whole: Data, nodes: Sequence[int]
) -> tuple[list[Data], list[int]]:
    """All that each node's logits depend on; our own models see no further."""
    graphs, index = [], []
    for node in nodes:
        part = neighbourhood(whole.edge_index, node, hops=len(network.convs), num_nodes=len(whole.x))
        graphs.append(Data(x=whole.x[part.nodes], edge_index=part.edge_index, y=whole.y[part.nodes]))
        index.append(part.index)
    return graphs, index
