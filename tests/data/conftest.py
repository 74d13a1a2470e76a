"""Every test here has a cache of its own, sees no network, and gets the raw data only by asking for them."""

import os
from pathlib import Path

import pytest

RAW = os.environ.get("APEXGNN_DATA")


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_world(monkeypatch, session_cache):
    monkeypatch.setenv("APEXGNN_CACHE", str(session_cache))
    monkeypatch.setenv("APEXGNN_OFFLINE", "1")
    monkeypatch.delenv("APEXGNN_DATA", raising=False)


@pytest.fixture
def raw() -> Path:
    if not RAW:
        pytest.skip("APEXGNN_DATA names no folder with the raw data sets")
    return Path(RAW)
