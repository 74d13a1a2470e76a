"""What is explained: test graphs of a data set, and the two models that were trained on it under one seed.

The graphs are the first `count`, in an order drawn once from seed 0, of those test graphs that *both* models of a seed
classify correctly, so that all methods of a comparison meet the same graphs, on their own architecture or on one. For
BA-Shapes they are nodes, each on the subgraph within three steps: three layers of message passing see no further.

Models are those of Table 1 (recipe `fast`), read from the folder `runs`; one that is not there is trained.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import sleep
from typing import cast

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from apexgnn.data import GraphDataset
from apexgnn.data import load as load_data
from apexgnn.errors import ApexError
from apexgnn.experiments.table1 import DATASETS, SOURCE, claimed
from apexgnn.neighbourhood import neighbourhood
from apexgnn.nn import GIN, PolyGIN, read_checkpoint
from apexgnn.nn import load as load_model
from apexgnn.training.recipes import MODELS, recipe
from apexgnn.training.run import SPLIT_SEED, Workload, run

HOPS = 3
LEARN_NODES = 15  # of a node task, for explainers that learn: each brings hundreds of others
ROWS = 10_000  # nodes in one forward pass


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A trained model and the hash of its weights and configuration.

    Attributes:
        kind: "polygin" or "gin".
        model: in eval mode.
        sha256: of its weights and its arguments.
    """

    kind: str
    model: PolyGIN | GIN
    sha256: str


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Graphs, the explained node in each (node tasks), and which graph or node of the data set each one is."""

    graphs: tuple[Data, ...]
    index: tuple[int, ...] | None
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """The graphs of one data set that are explained, for one seed.

    Attributes:
        dataset: its name in Table 1.
        seed: of both models.
        models: by kind.
        graphs: single graphs; subgraphs of one graph for a node task.
        index: the explained node in each, for a node task.
        ids: which graph (or node) of the data set each one is.
        own: by kind, all graphs in the same order that this model alone gets right, as far as the last of `graphs`.
            What is kept of a model thus outlives another model of the other kind.
        learn: training graphs, for explainers that learn; `learn_index` likewise.
    """

    dataset: str
    seed: int
    models: dict[str, Trained]
    graphs: tuple[Data, ...]
    index: tuple[int, ...] | None
    ids: tuple[int, ...]
    own: dict[str, Sample]
    learn: tuple[Data, ...]
    learn_index: tuple[int, ...] | None

    def shared(self, kind: str) -> list[int]:
        """Where the graphs of the subject stand among a model's own."""
        place = {one: k for k, one in enumerate(self.own[kind].ids)}
        return [place[one] for one in self.ids]


@dataclass(frozen=True, slots=True)
class Field:
    """Where and how much: the settings that all experiments share.

    Attributes:
        runs: folder of the models.
        seeds: how many seeds of each model, from 0.
        fewer: data sets with fewer seeds than that, and how many.
        graphs: at most how many graphs of each data set.
        learn: how many training graphs for explainers that learn.
        root: folder of raw data; by default what APEXGNN_DATA names.

    >>> Field(seeds=3, fewer=(("graph-sst2", 1),)).seeds_of("graph-sst2")
    1
    """

    runs: Path = Path("runs/table1")
    seeds: int = 3
    fewer: tuple[tuple[str, int], ...] = ()
    graphs: int = 100
    learn: int = 50
    root: Path | None = None

    def seeds_of(self, name: str) -> int:
        """How many seeds a data set has."""
        return min(self.seeds, dict(self.fewer).get(name, self.seeds))

    def folder(self, name: str, kind: str, seed: int) -> Path:
        """Where Table 1 keeps a model.

        >>> str(Field().folder("bbbp", "gin", 2))
        'runs/table1/bbbp-gin-fast-2'
        """
        return self.runs / f"{name}-{kind}-fast-{seed}"


@lru_cache(maxsize=1)
def dataset(name: str, root: Path | None) -> GraphDataset:
    """The data set behind a name of Table 1; the last one stays at hand."""
    return load_data(SOURCE.get(name, name), root=root)


def available(
    field: Field, names: Sequence[str] = DATASETS, *, report: Callable[[str], None] = print
) -> list[str]:
    """The data sets that can be read here; why the others cannot is reported."""
    found = []
    for name in names:
        try:
            dataset(name, field.root)
        except (ApexError, OSError) as error:
            report(f"{name} is SKIPPED: {error}")
        else:
            found.append(name)
    return found


def trained(
    name: str, kind: str, seed: int, field: Field, *, report: Callable[[str], None] = print
) -> Trained:
    """The model of Table 1, trained now if it is not there; another process that is at it is waited for."""
    folder = field.folder(name, kind, seed)
    while not (folder / "config.json").exists():
        with claimed(folder) as mine:
            if mine and not (folder / "config.json").exists():
                report(f"training {name} {kind} seed {seed}")
                work = Workload.of(SOURCE.get(name, name), root=field.root)
                run(work, kind, recipe("fast", dataset=name, model=kind), seed=seed, folder=folder)
        if not (folder / "config.json").exists():
            sleep(2.0)
    about = read_checkpoint(folder)
    arguments = json.dumps([about.model_class, about.config, about.sha256], sort_keys=True)
    return Trained(kind, load_model(folder), hashlib.sha256(arguments.encode()).hexdigest())


def subject(
    name: str,
    seed: int,
    field: Field,
    *,
    kinds: Sequence[str] = MODELS,
    report: Callable[[str], None] = print,
) -> Subject:
    """The graphs to explain and both models; graphs that either model gets wrong are left out."""
    models = {kind: trained(name, kind, seed, field, report=report) for kind in kinds}
    data = dataset(name, field.root)
    split = data.split(seed=SPLIT_SEED)
    order = torch.randperm(len(split.test), generator=torch.Generator().manual_seed(0))
    ids = split.test[order]
    right = {kind: correct(m.model, data, ids) for kind, m in models.items()}
    both = torch.stack(list(right.values())).all(dim=0).nonzero().flatten()[: field.graphs]
    end = int(both[-1]) + 1 if len(both) else 0
    own = {kind: sample(data, ids[:end][mask[:end]].tolist()) for kind, mask in right.items()}
    ours = sample(data, ids[both].tolist())
    learn, learn_index = cut(
        data, split.train[: min(field.learn, LEARN_NODES) if data.task == "node" else field.learn].tolist()
    )
    return Subject(name, seed, models, ours.graphs, ours.index, ours.ids, own, learn, learn_index)


def sample(data: GraphDataset, ids: Sequence[int]) -> Sample:
    """These graphs (or nodes) of a data set."""
    return Sample(*cut(data, ids), tuple(ids))


def cut(data: GraphDataset, ids: Sequence[int]) -> tuple[tuple[Data, ...], tuple[int, ...] | None]:
    """Single graphs; for a node task the subgraph around each node, and the node's place in it.

    >>> from apexgnn.data import load
    >>> graphs, index = cut(load("ba-shapes"), [699])
    >>> bool(graphs[0].motif[index[0]]), graphs[0].y[index[0]].item()
    (True, 3)
    """
    if data.task != "node":
        return tuple(data[i] for i in ids), None
    whole = data[0]
    assert whole.x is not None
    assert whole.edge_index is not None
    graphs, index = [], []
    for node in ids:
        part = neighbourhood(whole.edge_index, node, hops=HOPS, num_nodes=len(whole.x))
        extra = {"motif": whole.motif[part.nodes], "edge_gt": whole.edge_gt[part.edges]}
        graphs.append(Data(x=whole.x[part.nodes], edge_index=part.edge_index, y=whole.y[part.nodes], **extra))
        index.append(part.index)
    return tuple(graphs), tuple(index)


@torch.no_grad()
def correct(model: PolyGIN | GIN, data: GraphDataset, ids: Tensor) -> Tensor:
    """Which of these graphs (or nodes) the model classifies correctly."""
    if data.task == "node":
        whole = data[0]
        return cast(Tensor, (model(whole.x, whole.edge_index).argmax(1) == whole.y)[ids])
    step = max(1, ROWS // max(1, round(data.statistics().mean_nodes)))
    found = []
    for start in range(0, len(ids), step):
        batch: Batch = data.batch(ids[start : start + step])
        found.append(model(batch.x, batch.edge_index, batch=batch.batch).argmax(1) == batch.y.flatten())
    return torch.cat(found)
