"""`apexgnn data list` and `apexgnn data prepare NAME`: what there is, and getting it ready."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from apexgnn.data import Spec, describe, graph_sst2, load, names
from apexgnn.data.encoder import ENCODER
from apexgnn.data.sources import at_hand, root_folder
from apexgnn.data.text import PARSER

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, help="List data sets; make one ready."
)

Data = Annotated[
    Path | None, typer.Option("--data", help="Folder with the raw files; by default what APEXGNN_DATA names.")
]


@app.command("list")
def list_(data: Data = None) -> None:
    """Every data set: what it is, where it comes from, and whether it can be had without the network."""
    console, root = Console(soft_wrap=True), root_folder(data)
    for name in names():
        spec = describe(name)
        plural = "" if spec.graphs == 1 else "s"
        console.print(
            f"[bold]{name}[/]  {spec.task}, {spec.graphs:,} graph{plural}, {spec.features} features"
        )
        meaning = ", ".join(f"{k} = {label}" for k, label in enumerate(spec.labels))
        console.print(f"  labels   {spec.labels[0] if spec.classes == 1 else meaning}")
        console.print(f"  source   {spec.source}")
        console.print(f"  licence  {spec.licence}")
        console.print(f"  here     {'yes' if _here(spec, root) else 'no'}")


@app.command()
def prepare(
    name: Annotated[str, typer.Argument(help="A data set, as `apexgnn data list` names it.")],
    *,
    data: Data = None,
    out: Annotated[
        Path | None, typer.Option(help="Where graph-sst2 is made; by default the cache (APEXGNN_CACHE).")
    ] = None,
    parser: Annotated[str, typer.Option(help="spaCy model that parses the sentences (graph-sst2).")] = PARSER,
    encoder: Annotated[
        str, typer.Option(help="Transformer on the hub or in a folder that encodes the tokens (graph-sst2).")
    ] = ENCODER,
    precision: Annotated[
        str, typer.Option(help="Of the encoder: float32 or bfloat16 (graph-sst2).")
    ] = "float32",
) -> None:
    """Find or download a data set, check it, make its graphs, and say what it is."""
    console, root = Console(soft_wrap=True), root_folder(data)
    if describe(name).name == graph_sst2.NAME:
        with _bar(console) as bar:
            tasks = {stage: bar.add_task(stage, total=None) for stage in ("parse", "encode")}
            folder = graph_sst2.prepare(
                root,
                parser=parser,
                encoder=encoder,
                precision=precision,
                out=out,
                progress=lambda stage, done, of: bar.update(tasks[stage], completed=done, total=of),
            )
        console.print(f"prepared: {folder}")
        root = folder.parent
    dataset = load(name, root=root)
    found = dataset.statistics()
    console.print(repr(dataset))
    console.print(f"{found.nodes:,} nodes, {found.mean_nodes:.1f} and {found.mean_edges:.1f} edges a graph")
    for label, count in zip(dataset.labels, found.class_counts, strict=False):
        console.print(f"  {label}: {count:,}")
    about = dataset.provenance
    console.print(f"source: {about.source}\nlicence: {about.licence}")
    for path, sha256 in about.sha256.items():
        console.print(f"  {path}  SHA-256 {sha256}")
    for key, value in about.made.items():
        console.print(f"  {key}: {value}")


def _here(spec: Spec, root: Path | None) -> bool:
    """Whether a data set can be loaded without the network."""
    if spec.name == graph_sst2.NAME:
        return graph_sst2.at_hand(root)
    return all(at_hand(file, root) for file in spec.files)


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console)
