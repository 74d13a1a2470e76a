"""Splits: everything once, nothing twice, the same for the same seed."""

from itertools import chain, combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

from apexgnn.data import load
from apexgnn.data.splits import published_split, random_split, scaffold_split
from apexgnn.errors import InputError

SMILES = [
    "c1ccccc1C",
    "c1ccccc1CC",
    "C1CCCCC1",
    "CCO",
    "c1ccncc1",
    "C1CCCCC1O",
    "CC",
    "c1ccccc1O",
    "OC1CCCCC1",
]


@given(st.integers(0, 500), st.integers(0, 2**32))
def test_random_split(count, seed):
    split = random_split(count, seed)
    together = torch.cat([split.train, split.val, split.test])
    assert together.sort().values.tolist() == list(range(count))
    assert abs(len(split.train) - 0.8 * count) < 1
    assert abs(len(split.val) - 0.1 * count) < 1
    again = random_split(count, seed)
    assert torch.equal(again.train, split.train)
    assert torch.equal(again.test, split.test)


def test_other_seeds_give_other_splits_and_the_global_state_is_left_alone():
    before = torch.random.get_rng_state()
    a, b = random_split(100, 0), random_split(100, 1)
    assert not torch.equal(a.test, b.test)
    assert torch.equal(torch.random.get_rng_state(), before)


@given(st.lists(st.sampled_from(SMILES), min_size=1, max_size=40))
def test_scaffolds_stay_together(smiles):
    split = scaffold_split(smiles)
    parts = [split.train.tolist(), split.val.tolist(), split.test.tolist()]
    assert sorted(chain(*parts)) == list(range(len(smiles)))
    kinds = [{MurckoScaffoldSmiles(smiles=smiles[i]) for i in part} for part in parts]
    assert all(a.isdisjoint(b) for a, b in combinations(kinds, 2))
    assert len(parts[0]) <= 0.8 * len(smiles)


def test_published_split():
    split = published_split(torch.tensor([0, 1, 2, 0, 2]))
    assert [part.tolist() for part in (split.train, split.val, split.test)] == [[0, 3], [1], [2, 4]]


def test_a_split_that_a_data_set_does_not_have():
    with pytest.raises(InputError, match="got 'scaffold'; expected one of 'random'"):
        load("ba-shapes").split("scaffold")
