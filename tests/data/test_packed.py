"""Packed graphs against PyTorch Geometric's own collation."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from apexgnn.data.packed import PackedGraphs
from apexgnn.data.prepared import open_folder, read_meta, save
from apexgnn.errors import DataError


def some_graph(nodes: int, edges: int, seed: int) -> Data:
    rng = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randn(nodes, 3, generator=rng),
        edge_index=torch.randint(nodes, (2, edges), generator=rng),
        y=torch.randint(5, (1,), generator=rng),
        weight=torch.randn(edges, 2, generator=rng),
        role=torch.randint(9, (nodes,), generator=rng),
        smiles=f"name {seed}",
    )


def pack(graphs):
    return PackedGraphs.pack(graphs, node=["role"], edge=["weight"])


sizes = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 7)), min_size=1, max_size=6)


def assert_same(a: Data, b: Data) -> None:
    assert set(a.keys()) == set(b.keys())
    for key in a.keys():  # noqa: SIM118
        if isinstance(a[key], torch.Tensor):
            assert a[key].dtype == b[key].dtype
            assert torch.equal(a[key], b[key]), key
        else:
            assert a[key] == b[key]


@given(sizes, st.data())
def test_graphs_and_batches_are_those_of_pyg(sizes, data):
    graphs = [some_graph(n, e, seed) for seed, (n, e) in enumerate(sizes)]
    packed = pack(graphs)
    assert len(packed) == len(graphs)
    for a, b in zip(packed, graphs, strict=True):
        assert_same(a, b)
    chosen = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=5))
    batch = packed.batch(chosen)
    assert_same(batch, Batch.from_data_list([graphs[i] for i in chosen]))
    assert batch.num_graphs == len(chosen)
    for a, i in zip(batch.to_data_list(), chosen, strict=True):
        assert_same(a, graphs[i])
    assert_same(batch[0], graphs[chosen[0]])


@given(sizes)
def test_union_and_parts_are_the_same_graphs(sizes):
    graphs = [some_graph(n, e, seed) for seed, (n, e) in enumerate(sizes)]
    union = Batch.from_data_list(graphs)
    packed = PackedGraphs.from_union(
        union.x.numpy(),
        union.edge_index.numpy(),
        union.batch.numpy(),
        edge={"weight": union.weight.numpy()},
    )
    for mine, graph in zip(packed, graphs, strict=True):
        edges = {
            (a, b, *w) for a, b, w in zip(*graph.edge_index.tolist(), graph.weight.tolist(), strict=True)
        }
        found = zip(*mine.edge_index.tolist(), mine.weight.tolist(), strict=True)
        assert {(a, b, *w) for a, b, w in found} == edges
        assert torch.equal(mine.x, graph.x)


def test_indices_as_python_knows_them():
    packed = pack([some_graph(2, 3, s) for s in range(4)])
    assert packed[-1].smiles == "name 3"
    with pytest.raises(IndexError):
        packed[4]


def test_a_folder_gives_back_what_was_saved(tmp_path):
    packed = pack([some_graph(2 + s, 3, s) for s in range(4)])
    save(packed, tmp_path / "set", {"encoder": "none"})
    opened = open_folder(tmp_path / "set")
    assert isinstance(opened.x, np.memmap)
    for a, b in zip(opened, packed, strict=True):
        assert_same(a, b)
    assert read_meta(tmp_path / "set")["encoder"] == "none"


def test_half_precision_is_handed_out_as_float32(tmp_path):
    whole = pack([some_graph(3, 2, 0), some_graph(1, 0, 1)])
    half = PackedGraphs(whole.x.astype(np.float16), whole.edge_index, whole.node_ptr, whole.edge_ptr)
    assert half[0].x.dtype == half.batch([0, 1]).x.dtype == torch.float32


@pytest.mark.parametrize("damage", ["truncate", "no arrays", "not json", "other rows"])
def test_a_damaged_folder_is_refused(tmp_path, damage):
    folder = tmp_path / "set"
    save(pack([some_graph(3, 2, s) for s in range(2)]), folder, {})
    if damage == "truncate":
        content = (folder / "graphs.safetensors").read_bytes()
        (folder / "graphs.safetensors").write_bytes(content[: len(content) // 2])
    elif damage == "no arrays":
        (folder / "graphs.safetensors").unlink()
    elif damage == "not json":
        (folder / "strings.json").write_text("{")
    else:
        np.save(folder / "x.npy", np.zeros((5, 3)))
    with pytest.raises(DataError, match="prepare it anew"):
        open_folder(folder)


@pytest.mark.parametrize("content", ["{", json.dumps({"format": 99}), json.dumps([1])])
def test_metadata_of_another_format_is_refused(tmp_path, content):
    (tmp_path / "meta.json").write_text(content)
    with pytest.raises(DataError, match=r"meta\.json"):
        read_meta(tmp_path)


def test_an_array_with_objects_is_not_unpickled(tmp_path):
    save(pack([some_graph(3, 2, s) for s in range(2)]), tmp_path, {})
    np.save(tmp_path / "x.npy", np.array([[print]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError):
        open_folder(tmp_path)
