"""The second part of `apexgnn demo`: a node model trained on the spot, explained exactly, against quadrature, drawn."""

from __future__ import annotations

from pathlib import Path

import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from torch_geometric.data import Data

import apexgnn
from apexgnn.cli import certify as certifying
from apexgnn.cli import houses
from apexgnn.cli.houses import ROLES, Houses
from apexgnn.errors import InputError
from apexgnn.figures import draw_graph, save_figure
from apexgnn.neighbourhood import Neighbourhood, neighbourhood
from apexgnn.nn import save

BASE, HOUSE = 300, 5  # nodes of the backbone; nodes of a house
BUDGETS = (2, 4, 8, 16, 50)
EXPLAINED = 4  # nodes whose errors the table gives the largest of
LEGIBLE = 12  # nodes that a picture should have at least

# A rule of n intervals has n + 1 points, so trapezoid takes one interval less than the budget; simpson would
# too, but needs an even number of them, so it takes as many, and one point more.
STEPS_BESIDE_BUDGET = {
    "left": 0,
    "right": 0,
    "midpoint": 0,
    "trapezoid": -1,
    "simpson": 0,
    "gauss-legendre": 0,
}


def show(console: Console, out: Path, seed: int) -> None:
    """Train, certify, explain, compare, draw; the model and the picture go to `out`."""
    found = _train(console, seed)
    save(found.model, out / "model", metadata={"data": "BA-Shapes", "seed": seed, "labels": list(ROLES)})
    nodes = explainable(found)
    certificate = apexgnn.certify(found.model, found.data, index=nodes[0])
    console.print()
    certifying.show(console, certificate, rising=True)
    console.print("\n[bold]Exact explanations: f(X) = f(0) + Σφ[/]")
    console.print(explanations(found, nodes[:EXPLAINED]))
    console.print("\n[bold]Completeness error |Σφ − (f(X) − f(0))| against gradient evaluations[/]")
    console.print(f"The largest over these {EXPLAINED} nodes, in float64; simpson takes one evaluation more.")
    console.print(errors(found, nodes[:EXPLAINED]))
    picture = save_figure(draw(found, nodes[0]), out / "explanation.png")
    console.print(f"\nPicture: {picture}", soft_wrap=True)
    console.print(f"Model:   {out / 'model'}   (try: apexgnn certify {out / 'model'})", soft_wrap=True)


def _train(console: Console, seed: int) -> Houses:
    columns = (
        TextColumn("Training"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TimeElapsedColumn(),
    )
    console.print(f"BA-Shapes, seed {seed}: which part of which house is each node?")
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=houses.EPOCHS, loss=float("nan"))
        found = houses.train(seed, report=lambda loss: progress.update(task, advance=1, loss=loss))
    shares = ", ".join(f"{value:.1%} {name}" for name, value in found.accuracy.items())
    console.print(f"Accuracy: {shares}", soft_wrap=True)
    return found


def field(found: Houses, node: int) -> Neighbourhood:
    """Everything that the score of a node depends on: one hop for each layer."""
    hops = len(found.model.convs)
    return neighbourhood(found.data.edge_index, node, hops=hops, num_nodes=found.data.num_nodes)


def house_of(node: int) -> set[int]:
    """The five nodes of the house that this node belongs to."""
    first = node - (node - BASE) % HOUSE
    return set(range(first, first + HOUSE))


def explainable(found: Houses) -> list[int]:
    """House nodes of the test part that are rightly classified, those with the most legible pictures first."""
    with torch.no_grad():
        predicted = found.model(found.data.x, found.data.edge_index).argmax(dim=1)
    sizes = {}
    for node in found.split.test.tolist():
        if node >= BASE and predicted[node] == found.data.y[node]:
            seen = field(found, node).nodes
            if house_of(node) <= set(seen.tolist()):
                sizes[node] = len(seen)
    if not sizes:
        raise InputError(
            "--seed", got="a model that finds no house", expected="one that does", fix="another seed"
        )
    return sorted(sizes, key=lambda node: (sizes[node] < LEGIBLE, sizes[node], node))


def explanations(found: Houses, nodes: list[int]) -> Table:
    """What each node's score is made of."""
    drawn = Table()
    for name in ("node", "role", "f(X)", "f(0)", "Σφ house", "Σφ rest", "residual"):
        drawn.add_column(name, justify="left" if name == "role" else "right", no_wrap=True)
    for node in nodes:
        result = apexgnn.attribute(found.model, found.data, index=node)
        inside = float(result.nodes[sorted(house_of(node))].sum())
        numbers = [
            float(result.score),
            float(result.baseline_score),
            inside,
            float(result.nodes.sum()) - inside,
        ]
        cells = [f"{value:+.3f}" for value in numbers]
        drawn.add_row(str(node), ROLES[int(result.target)], *cells, _tiny(result.residual))
    return drawn


def errors(found: Houses, nodes: list[int]) -> Table:
    """Completeness error against the number of gradient evaluations, for every rule and for the exact method.

    Computed on each node's field, cut out of the graph: nothing outside it has a part in the score.
    """
    drawn = Table()
    drawn.add_column("rule")
    for points in BUDGETS:
        drawn.add_column(str(points), justify="right")
    cut = [field(found, node) for node in nodes]
    graphs = [(Data(x=found.data.x[part.nodes], edge_index=part.edge_index), part.index) for part in cut]
    for rule, more in STEPS_BESIDE_BUDGET.items():
        cells = []
        for points in BUDGETS:
            results = [
                apexgnn.integrated_gradients(found.model, data, rule=rule, steps=points + more, index=index)
                for data, index in graphs
            ]
            cells.append(_largest(results))
        drawn.add_row(rule, *cells)
    exact = [apexgnn.attribute(found.model, data, index=index) for data, index in graphs]
    points = exact[0].evaluations
    drawn.add_row(
        "exact", *[_largest(exact) if budget == points else "" for budget in BUDGETS], style="bold green"
    )
    return drawn


def _largest(results: list[apexgnn.Attribution]) -> str:
    return _tiny(torch.cat([result.residual for result in results]).abs().max())


def _tiny(value: torch.Tensor) -> str:
    return f"{float(value):.0e}" if float(value) else "0"


def draw(found: Houses, node: int) -> Figure:
    """The house of a node: what speaks for its role, and what those same nodes say about being no house at all."""
    seen = field(found, node)
    results = [
        apexgnn.attribute(found.model, found.data, index=node, target=t) for t in (int(found.data.y[node]), 0)
    ]
    certificate = results[0].certificate
    assert certificate is not None
    worst = max(abs(float(result.residual)) for result in results)
    return draw_graph(
        seen.edge_index,
        torch.stack([result.nodes[seen.nodes] for result in results]),
        target=seen.index,
        motif=[k for k, v in enumerate(seen.nodes.tolist()) if v in house_of(node)],
        captions=[
            f"“{ROLES[int(result.target)]}”{', as predicted' if k == 0 else ''}:  {_sum(result)}"
            for k, result in enumerate(results)
        ],
        title=f"Why node {node} is the {ROLES[int(found.data.y[node])]}",
        subtitle=(
            "Score = score of the graph without features + the signed shares of its nodes, drawn.\n"
            f"Exact: degree {certificate.degree}, {certificate.points} points, |residual| ≤ {worst:.0e}."
        ),
    )


def _sum(result: apexgnn.Attribution) -> str:
    score, start, share = (float(v) for v in (result.score, result.baseline_score, result.nodes.sum()))
    return f"{score:.2f} = {start:.2f} {'+' if share >= 0 else '-'} {abs(share):.2f}".replace("-", "−")
