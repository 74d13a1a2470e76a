"""The paper's pictures: houses of BA-Shapes, sentences of Graph-SST2, molecules of the three molecular sets.

Which examples are shown is fixed beforehand and looks at no attribution: the first ones, in an order drawn from seed 0,
among the test graphs that both models of seed 0 classify correctly and that have the wanted label and a legible size.
What the pictures seem to say is checked on all correctly classified test graphs: see `claims`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from torch_geometric.data import Data

from apexgnn.experiments import claims
from apexgnn.experiments.bench import Laboratory, Report
from apexgnn.experiments.curves import TITLES
from apexgnn.experiments.structures import house_of, molecular, surroundings
from apexgnn.experiments.subjects import Subject, dataset
from apexgnn.experiments.tables import record, write_csv
from apexgnn.figures import save_figure
from apexgnn.figures.scenes import Scene, draw_scenes
from apexgnn.figures.sentences import Sentence, draw_sentences

ROLES = {3: "top", 1: "middle", 2: "bottom"}
MOLECULES = {"bbbp": (0, 1, 1), "bace": (0, 1, 1), "mutagenicity": (0, 1, 1)}  # labels shown, left to right
ATOMS, TOKENS = (10, 34), (8, 22)  # legible sizes
FIGURES = {"houses": ("ba-shapes",), "sentences": ("graph-sst2",), "molecules": tuple(MOLECULES)}


def reproduce(laboratory: Laboratory, out: Path, *, report: Report = print) -> None:
    """Write qualitative.csv and the pictures."""
    found = list(claims.rows(laboratory))
    write_csv(out / "qualitative.csv", claims.COLUMNS, found)
    for name, needed in FIGURES.items():
        there = [one for one in needed if one in laboratory.datasets]
        if not there:
            report(f"qualitative: no picture of {name}: {', '.join(needed)} is not at hand")
            continue
        subjects = [claims.everything(laboratory.field, one, 0) for one in there]
        if not any(chosen.graphs for chosen in subjects):
            report(f"qualitative: no picture of {name}: both models are wrong everywhere")
            continue
        figure = {"houses": houses, "sentences": sentences, "molecules": molecules}[name](
            laboratory, subjects
        )
        path = out / "figures" / f"qualitative-{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        for ending in (".pdf", ".svg", ".png"):
            save_figure(figure, path.with_suffix(ending))
    record(
        out / "provenance.json",
        "qualitative",
        {
            "model seeds": {name: laboratory.field.seeds_of(name) for name in laboratory.datasets},
            "pictures": "seed 0",
        },
    )
    report(f"qualitative: {len(found)} rows in {out / 'qualitative.csv'}")


def houses(laboratory: Laboratory, subjects: Sequence[Subject]) -> Figure:
    """One node of each role in its house, with the nearest nodes around it."""
    (chosen,) = subjects
    assert chosen.index is not None
    scenes = []
    for place in examples(chosen, tuple(ROLES), lambda *_: True):
        graph, node = chosen.graphs[place], chosen.index[place]
        word = ROLES[int(graph.y[node])]
        phi = claims.shares(chosen, place)
        nodes, structure = surroundings(graph, node)
        inside = house_of(graph, node)
        positive = phi.clamp(min=0)
        told = f"{float(positive[inside].sum() / positive.sum()):.0%} of the positive share is in the house"
        hidden = float(phi.sum() - phi[nodes].sum())
        rest = f"{len(phi) - len(nodes)} of {len(phi)} nodes that count are not shown: Σφ {hidden:+.2f}"
        scenes.append(
            Scene(
                structure.places,
                structure.edges,
                phi[nodes].numpy(),
                structure.letters,
                f"{word} of a house (node {chosen.ids[place]})\n{told}\n{rest}",
                target=int((nodes == node).nonzero()),
                ringed=inside[nodes].nonzero().flatten().tolist(),
            )
        )
    subtitle = "Double ring: the explained node. Dark rings: its house. Zero baseline."
    return draw_scenes(
        scenes, columns=3, title="BA-Shapes: signed shares around a house (APEX)", subtitle=subtitle
    )


def molecules(laboratory: Laboratory, subjects: Sequence[Subject]) -> Figure:
    """Three molecules of each set, a row per set."""
    scenes = []
    for chosen in subjects:
        labels = dataset(chosen.dataset, laboratory.field.root).labels
        for place in examples(chosen, MOLECULES[chosen.dataset], suits):
            graph = chosen.graphs[place]
            structure = molecular(graph)
            label = int(graph.y.flatten()[0])
            phi = claims.shares(chosen, place)
            letters = [letter if letter != "C" else "" for letter in structure.letters]
            caption = f"{TITLES[chosen.dataset]}: {labels[label]} (molecule {chosen.ids[place]})"
            scenes.append(Scene(structure.places, structure.edges, phi.numpy(), letters, caption))
    subtitle = (
        "Share of the logit of the class named, which is the predicted one; zero baseline. No letter: carbon."
    )
    return draw_scenes(
        scenes, columns=3, title="Molecules: signed shares of the atoms (APEX)", subtitle=subtitle
    )


def suits(name: str, graph: Data) -> bool:
    """Whether a graph has a legible size; a mutagen that is shown has a nitro group, as in the paper."""
    least, most = TOKENS if name == "graph-sst2" else ATOMS
    if not least <= (graph.num_nodes or 0) <= most:
        return False
    return name != "mutagenicity" or int(graph.y) == 1 or bool(claims.nitro(graph)[0].any())


def sentences(laboratory: Laboratory, subjects: Sequence[Subject]) -> Figure:
    """Three positive and three negative sentences."""
    (chosen,) = subjects
    labels = dataset(chosen.dataset, laboratory.field.root).labels
    found: list[Sentence] = []
    for place in examples(chosen, (1, 1, 1, 0, 0, 0), suits):
        graph = chosen.graphs[place]
        caption = f"predicted {labels[int(graph.y.flatten()[0])]} (sentence {chosen.ids[place]})"
        found.append(Sentence(graph.tokens, claims.shares(chosen, place).tolist(), caption))
    subtitle = "Red supports the predicted class, blue opposes it. Share of its logit, zero baseline."
    return draw_sentences(found, title="Graph-SST2: signed shares of the words (APEX)", subtitle=subtitle)


def examples(chosen: Subject, labels: Sequence[int], wanted: Callable[[str, Data], bool]) -> list[int]:
    """For each label in turn the first graph of that label that is wanted and not taken yet."""
    taken: list[int] = []
    for label in labels:
        for place, graph in enumerate(chosen.graphs):
            own = graph.y.flatten()[0] if chosen.index is None else graph.y[chosen.index[place]]
            if int(own) == label and place not in taken and wanted(chosen.dataset, graph):
                taken.append(place)
                break
    return taken
