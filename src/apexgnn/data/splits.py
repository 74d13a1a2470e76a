"""How a data set is divided into training, validation and test.

- random: a seeded permutation, 80/10/10.
- scaffold: molecules with the same Bemis–Murcko scaffold stay together; the largest groups are for training,
  so the test set holds ring systems that training never saw. Deterministic.
- published: the division that came with the data (BA-Shapes' masks, the treebank's).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.errors import InputError, MissingDependencyError

KINDS = ("random", "scaffold", "published")


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Indices (of graphs, or of nodes for a node task) for training, validation and test.

    Attributes:
        train, val, test: int64 indices, disjoint, together everything.
        kind: how they were chosen.
        seed: what the permutation was drawn from; None where nothing is drawn.
    """

    train: Tensor
    val: Tensor
    test: Tensor
    kind: str
    seed: int | None = None

    def __repr__(self) -> str:
        seed = "" if self.seed is None else f", seed={self.seed}"
        return f"Split({self.kind}{seed}: {len(self.train)}/{len(self.val)}/{len(self.test)})"


def random_split(count: int, seed: int = 0) -> Split:
    """80/10/10 of `count` items by a seeded permutation; what rounding leaves over goes to the test set.

    >>> random_split(4337, seed=0)
    Split(random, seed=0: 3469/433/435)
    """
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    train, val = int(0.8 * count), int(0.1 * count)
    return Split(order[:train], order[train : train + val], order[train + val :], "random", seed)


def scaffold_split(smiles: Sequence[str]) -> Split:
    """80/10/10 by Bemis–Murcko scaffold, largest groups first (ties: the group that appears first).

    >>> scaffold_split(["c1ccccc1C"] * 8 + ["C1CCCCC1O", "CCO"])
    Split(scaffold: 8/1/1)
    """
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise MissingDependencyError(
            "RDKit is needed for scaffold splits. To fix: pip install 'apexgnn[molecules]'"
        ) from error
    groups: dict[str, list[int]] = defaultdict(list)
    with rdBase.BlockLogs():
        for i, text in enumerate(smiles):
            scaffold = Chem.MurckoDecompose(Chem.MolFromSmiles(text))
            groups[Chem.MolToSmiles(scaffold, isomericSmiles=False)].append(i)
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    for group in sorted(groups.values(), key=lambda g: (-len(g), g[0])):
        if len(parts[0]) + len(group) <= 0.8 * len(smiles):
            parts[0].extend(group)
        elif len(parts[0]) + len(parts[1]) + len(group) <= 0.9 * len(smiles):
            parts[1].extend(group)
        else:
            parts[2].extend(group)
    train, val, test = (torch.tensor(part, dtype=torch.long) for part in parts)
    return Split(train, val, test, "scaffold")


def published_split(part: Tensor) -> Split:
    """The split that the data carry: 0, 1 or 2 (train, validation, test) for each item.

    >>> published_split(torch.tensor([0, 2, 0, 1])).train.tolist()
    [0, 2]
    """
    train, val, test = ((part == k).nonzero().flatten() for k in range(3))
    return Split(train, val, test, "published")


def check_kind(kind: str, valid: Sequence[str]) -> str:
    """`kind` if this data set has such a split."""
    if kind not in valid:
        raise InputError("kind", got=repr(kind), expected="one of " + ", ".join(map(repr, valid)))
    return kind
