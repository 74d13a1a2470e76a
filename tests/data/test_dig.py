"""DIG's published layout, and pickles that want more than to be an array."""

import codecs
import io
import json
import os
import pickle

import numpy as np
import pytest
import torch

from apexgnn.data import dig, load
from apexgnn.errors import DataError

PREFIX = "Graph-SST2"


def write_dig(root, *, x=None, **changes):
    """Three sentences of 3, 1 and 2 tokens, as the authors' files have them."""
    folder = root / PREFIX / "raw"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 4)).astype(np.float32) if x is None else x
    files = {
        "edge_index": "0 1\n1 2\n5 4\n",
        "node_indicator": "1\n1\n1\n2\n3\n3\n",
        "graph_labels": "1\n0\n1\n",
        "split_indices": "0\n2\n1\n",
    } | changes
    (folder / f"{PREFIX}_node_features.pkl").write_bytes(pickle.dumps(x))
    for part, content in files.items():
        (folder / f"{PREFIX}_{part}.txt").write_text(content)
    tokens = {"0": ["so", "very", "good"], "1": ["bad"], "2": ["not", "bad"]}
    (folder / f"{PREFIX}_sentence_tokens.json").write_text(json.dumps(tokens))
    return x


def test_the_published_layout(tmp_path):
    x = write_dig(tmp_path)
    dataset = load("graph-sst2", root=tmp_path)
    assert dataset.num_features == 4
    assert [g.num_nodes for g in dataset] == [3, 1, 2]
    assert dataset.y.tolist() == [1, 0, 1]
    assert dataset[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert dataset[1].num_edges == 0
    assert dataset[2].edge_index.tolist() == [[0, 1], [1, 0]]
    assert dataset[2].tokens == ["not", "bad"]
    assert torch.equal(torch.cat([g.x for g in dataset]), torch.from_numpy(x))
    split = dataset.split()
    assert [split.train.tolist(), split.val.tolist(), split.test.tolist()] == [[0], [2], [1]]
    assert "bert" in dataset.provenance.made["encoder"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_every_protocol(protocol, dtype, order):
    x = np.asarray(np.random.default_rng(1).standard_normal((5, 3)).astype(dtype), order=order)
    got = dig.read_array(io.BytesIO(pickle.dumps(x, protocol=protocol)), "x")
    assert got.dtype == x.dtype
    assert np.array_equal(got, x)


def test_the_name_that_older_numpy_wrote():
    content = pickle.dumps(np.eye(3), protocol=2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert np.array_equal(dig.read_array(io.BytesIO(content), "x"), np.eye(3))


class Runs:
    """Pickles to a call."""

    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "thing",
    [
        Runs(os.system, "touch OWNED"),
        Runs(eval, "open('OWNED', 'w')"),
        [np.eye(2), Runs(os.system, "touch OWNED")],
        Runs(codecs.encode, "x", "rot13"),
        Runs(codecs.encode, "touch OWNED", "zlib_codec"),
        Runs(getattr, "text", "upper"),
        np.array([[Runs(os.system, "touch OWNED")]], dtype=object),
        np.array([["text"]]),
        np.zeros(3),
        np.zeros((2, 2, 2)),
        np.zeros((2, 2), dtype=np.int64),
        np.zeros((2, 2), dtype=[("a", "f4")]),
        np.ma.zeros((2, 2)),
        np.float64(1.0),
        np.dtype("f4"),
        [np.eye(2)],
        {"x": np.eye(2)},
        "text",
        None,
        torch.eye(2),
    ],
    ids=lambda thing: type(thing).__name__,
)
@pytest.mark.parametrize("protocol", [2, 5])
def test_anything_else_is_refused_and_nothing_runs(thing, protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"^x: got a pickle with"):
        dig.read_array(io.BytesIO(pickle.dumps(thing, protocol=protocol)), "x")
    assert os.listdir(tmp_path) == []


def test_opcodes_by_hand():
    """`stack_global` with names from the stack, a persistent id, an array of a stated size it does not have."""
    calls = b"cposix\nsystem\n(S'touch OWNED'\ntR."
    assert_refused(calls)
    assert_refused(b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02ls\x85R.")
    assert_refused(b"Pname\n.")
    assert_refused(b"")
    assert_refused(b"not a pickle at all")
    assert_refused(pickle.dumps(np.zeros((2, 2)))[:-20])
    huge = pickle.dumps(np.zeros((2, 2)), protocol=2).replace(
        b"K\x02K\x02\x86", b"J\xff\xff\xff\x7fK\x02\x86"
    )
    assert_refused(huge)


def assert_refused(content):
    with pytest.raises(DataError):
        dig.read_array(io.BytesIO(content), "x")


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"node_indicator": "1\n1\n1\n2\n3\n"}, "5 node indicators for 6 nodes"),
        ({"node_indicator": "1\n1\n1\n3\n3\n3\n"}, "count up from 1"),
        ({"node_indicator": "1\n1\n2\n1\n3\n3\n"}, "count up from 1"),
        ({"graph_labels": "1\n0\n"}, "3 graphs, but 2/3/3"),
        ({"edge_index": "0 1\n1 6\n"}, "out of range"),
        ({"edge_index": "0 1\n-1 2\n"}, "out of range"),
        ({"edge_index": "0 1\n2 3\n"}, "between two graphs"),
        ({"edge_index": "0 x\n"}, "x"),
    ],
)
def test_files_that_do_not_belong_together(tmp_path, changes, why):
    write_dig(tmp_path, **changes)
    with pytest.raises(DataError, match=why):
        load("graph-sst2", root=tmp_path)


def test_a_missing_file(tmp_path):
    write_dig(tmp_path)
    (tmp_path / PREFIX / "raw" / f"{PREFIX}_edge_index.txt").unlink()
    with pytest.raises(DataError, match="edge_index"):
        load("graph-sst2", root=tmp_path)
