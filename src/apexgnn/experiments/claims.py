"""What the pictures are said to show, as numbers over all correctly classified test graphs.

    ba-shapes      nodes of houses: the share of the positive attribution that lies inside the house, and the size of
                   the explained node's own share against the largest (the paper: "near-zero")
    mutagenicity   molecules labelled mutagenic, with a nitro group: mean φ of nitro nitrogens, of nitro oxygens and of
                   all other atoms, for the mutagenic class
    graph-sst2     mean φ of words of the predicted polarity, of the opposite one, and of all other tokens
    bbbp           molecules that pass: mean φ of oxygen and nitrogen atoms, and of carbon atoms, for passing
    bace           inhibitors: mean φ of atoms in rings, and of all others, for inhibiting

Means are taken within each graph first. `difference` is the mean over graphs of the first against the last group, graph
by graph, where a graph has both. φ is exact, from the zero baseline, for the logit of the predicted class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from apexgnn.experiments.areas import clustered
from apexgnn.experiments.bench import Laboratory
from apexgnn.experiments.cells import content
from apexgnn.experiments.lexicon import polarity
from apexgnn.experiments.structures import house_of
from apexgnn.experiments.subjects import Field, Subject, subject
from apexgnn.explain import attribute

ALL = 10**9
COLUMNS = ("dataset", "model", "measure", "value", "low", "high", "graphs", "seeds")
Values = dict[str, float]
IN_RING = 8  # column of the molecular features


def nitro(graph: Data) -> tuple[Tensor, Tensor]:
    """[N] booleans: nitrogens with two oxygens that have no other neighbour, and these oxygens.

    >>> edges = torch.tensor([[0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1]])
    >>> group = Data(atomic_number=torch.tensor([6, 7, 8, 8]), edge_index=edges)
    >>> [mask.int().tolist() for mask in nitro(group)]
    [[0, 1, 0, 0], [0, 0, 1, 1]]
    """
    number, (tail, head) = graph.atomic_number, graph.edge_index
    degree = torch.bincount(head, minlength=len(number))
    ending = (number == 8) & (degree == 1)
    count = torch.zeros(len(number)).index_add(0, head, ending[tail].float())
    nitrogens = (number == 7) & (count >= 2)
    oxygens = torch.zeros_like(nitrogens)
    oxygens[tail[nitrogens[head] & ending[tail]]] = True
    return nitrogens, oxygens


def house_values(graph: Data, phi: Tensor, node: int) -> Values:
    """Where the positive attribution of a house's node lies."""
    inside, positive = house_of(graph, node), phi.clamp(min=0)
    return {
        "positive attribution inside the house": float(positive[inside].sum() / positive.sum()),
        "nodes inside the house, share": float(inside.float().mean()),
        "explained node's |φ| against the largest": float(phi[node].abs() / phi.abs().max()),
    }


def group_values(phi: Tensor, groups: Mapping[str, Tensor]) -> Values:
    """Mean φ of each group, and of the first minus that of the last.

    >>> group_values(torch.tensor([3.0, 1.0]), {"a": torch.tensor([True, False]), "b": torch.tensor([False, True])})
    {'a': 3.0, 'b': 1.0, 'difference': 2.0}
    """
    means = {
        name: float(phi[mask].mean()) if bool(mask.any()) else float("nan") for name, mask in groups.items()
    }
    first, *_, last = means.values()
    return {**means, "difference": first - last}


def values(dataset: str, graph: Data, phi: Tensor, *, node: int | None) -> Values:
    """The numbers of one graph; none where the claim is not about it."""
    y = graph.y
    assert y is not None
    label = int(y.flatten()[0]) if node is None else int(y[node])
    if dataset == "ba-shapes":
        return {} if label == 0 or node is None else house_values(graph, phi, node)
    groups = GROUPS[dataset](graph, label)
    return group_values(phi, groups) if groups else {}


def _words(graph: Data, label: int) -> dict[str, Tensor]:
    sign = torch.tensor([polarity(token) for token in graph.tokens]) * (1 if label else -1)
    return {
        "words of the predicted polarity": sign > 0,
        "opposite words": sign < 0,
        "other tokens": sign == 0,
    }


def _nitro_groups(graph: Data, label: int) -> dict[str, Tensor]:
    nitrogens, oxygens = nitro(graph)
    if label != 0 or not bool(nitrogens.any()):
        return {}
    return {"nitro nitrogens": nitrogens, "nitro oxygens": oxygens, "other atoms": ~(nitrogens | oxygens)}


def _polar_atoms(graph: Data, label: int) -> dict[str, Tensor]:
    assert graph.x is not None
    number = graph.x[:, 0].long()
    return {"oxygen and nitrogen": (number == 8) | (number == 7), "carbon": number == 6} if label == 1 else {}


def _rings(graph: Data, label: int) -> dict[str, Tensor]:
    assert graph.x is not None
    ring = graph.x[:, IN_RING] > 0
    return {"atoms in rings": ring, "other atoms": ~ring} if label == 1 else {}


GROUPS = {"graph-sst2": _words, "mutagenicity": _nitro_groups, "bbbp": _polar_atoms, "bace": _rings}


def examined(laboratory: Laboratory, dataset: str, seed: int) -> tuple[list[Values], tuple[int, ...]]:
    """The numbers of all graphs that both models of a seed get right."""
    chosen = everything(laboratory.field, dataset, seed)
    key = {
        "what": "claims",
        "dataset": dataset,
        "model": chosen.models["polygin"].sha256,
        "data": content(chosen.graphs, chosen.index),
    }
    found: list[Values] = laboratory.store.cell(
        key, lambda: [_one(chosen, k) for k in range(len(chosen.graphs))]
    )
    return found, chosen.ids


def everything(field: Field, dataset: str, seed: int) -> Subject:
    """All test graphs that both models of a seed get right."""
    return subject(dataset, seed, replace(field, graphs=ALL, learn=1))


def shares(chosen: Subject, place: int) -> Tensor:
    """[N], the exact shares of one graph's nodes for the predicted class."""
    node = None if chosen.index is None else chosen.index[place]
    return attribute(chosen.models["polygin"].model, chosen.graphs[place], index=node).nodes


def _one(chosen: Subject, place: int) -> Values:
    node = None if chosen.index is None else chosen.index[place]
    found = values(chosen.dataset, chosen.graphs[place], shares(chosen, place), node=node)
    return {name: float(value) for name, value in found.items()}


def rows(laboratory: Laboratory) -> Iterator[dict[str, Any]]:
    """The rows of `qualitative.csv`: means over graphs and seeds, with bootstrap intervals over graphs."""
    for dataset in laboratory.datasets:
        cells = [examined(laboratory, dataset, seed) for seed in range(laboratory.field.seeds_of(dataset))]
        measures = dict.fromkeys(name for found, _ in cells for one in found for name in one)
        for measure in measures:
            mine = [np.array([one.get(measure, float("nan")) for one in found]) for found, _ in cells]
            ids: list[Sequence[int]] = [owners for _, owners in cells]
            mean, low, high, graphs = clustered(mine, ids)
            yield {
                **{"dataset": dataset, "model": "polygin", "measure": measure, "value": mean},
                **{"low": low, "high": high, "graphs": graphs, "seeds": len(cells)},
            }
