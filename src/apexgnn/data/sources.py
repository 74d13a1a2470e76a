"""Where raw files are found, in this order, and that they are the right ones.

1. the folder that the user names: `root=`, else the environment variable APEXGNN_DATA;
2. an installed package that carries the file (found without being imported);
3. the official download, kept in the cache (never tried where APEXGNN_OFFLINE is set).

A file counts only if its SHA-256 is the recorded one. The folder is never written to. The cache is
APEXGNN_CACHE, else `~/.cache/apexgnn`; it also keeps the graphs that were made of the raw files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from apexgnn.data.packed import PackedGraphs
from apexgnn.data.prepared import FEATURES, FORMAT, open_arrays, read_meta, save
from apexgnn.errors import DataError
from apexgnn.files import write_atomically

LARGEST_DOWNLOAD = 1 << 28
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Packaged:
    """The same data inside a Python package: its import name, the file in it, and that file's checksum."""

    package: str
    file: str
    sha256: str
    install: str


@dataclass(frozen=True, slots=True)
class RawFile:
    """A raw file.

    Attributes:
        path: below the root, as PyTorch Geometric lays it out.
        sha256: its checksum.
        url: the official download; empty where there is none.
        member: the file's name inside the download, in whatever folder, where that is a zip archive.
        packaged: an installed package that carries the same data.
        optional: the data set can be read without it.
    """

    path: str
    sha256: str
    url: str = ""
    member: str = ""
    packaged: Packaged | None = None
    optional: bool = False


def root_folder(root: str | os.PathLike[str] | None) -> Path | None:
    """The folder that the user names, by argument or by APEXGNN_DATA."""
    named = root if root is not None else os.environ.get("APEXGNN_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DataError(
            "root" if root is not None else "APEXGNN_DATA",
            got=f"{str(folder)!r}",
            expected="an existing folder",
        )
    return folder


def cache_folder() -> Path:
    """Where downloads and processed graphs are kept."""
    named = os.environ.get("APEXGNN_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(named).expanduser() if named else Path(base).expanduser() / "apexgnn"


def locate(file: RawFile, root: Path | None) -> Path | None:
    """The path of a raw file with the right checksum; None only for an optional file that is nowhere."""
    if root is not None and (path := root / file.path).is_file():
        return verified(path, file.sha256)
    if file.packaged is not None and (found := _in_package(file.packaged)) is not None:
        return verified(found, file.packaged.sha256)
    kept = cache_folder() / file.path
    if kept.is_file() and _sha256(kept.read_bytes()) == file.sha256:
        return kept
    if file.url and not os.environ.get("APEXGNN_OFFLINE"):
        return _download(file, kept)
    if file.optional:
        return None
    raise _missing(file, "no such file")


def at_hand(file: RawFile, root: Path | None) -> bool:
    """Whether a raw file lies here already; its checksum is not looked at."""
    places = [folder / file.path for folder in (root, cache_folder()) if folder is not None]
    packaged = file.packaged is not None and _in_package(file.packaged) is not None
    return file.optional or packaged or any(path.is_file() for path in places)


def verified(path: Path, sha256: str) -> Path:
    """`path`, if its checksum is the recorded one."""
    try:
        got = _sha256(path.read_bytes())
    except OSError as error:
        raise DataError(str(path), got=str(error), expected="a readable file") from error
    if got != sha256:
        raise DataError(
            str(path),
            got=f"SHA-256 {got[:16]}…",
            expected=f"{sha256[:16]}…",
            fix="the file is damaged or another edition; replace it, or move it away to have it downloaded",
        )
    return path


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _in_package(packaged: Packaged) -> Path | None:
    """The file inside an installed package; the package is not imported."""
    spec = find_spec(packaged.package)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (path := Path(place) / packaged.file).is_file():
            return path
    return None


def _missing(file: RawFile, reason: str) -> DataError:
    ways = [f"put it at <folder>/{file.path} and name the folder with root=, --data or APEXGNN_DATA"]
    if file.packaged is not None:
        ways.append(file.packaged.install)
    if file.url:
        ways.append(f"connect to the network ({file.url})")
    return DataError(file.path, got=reason, expected="the raw file", fix="; or ".join(ways))


def _download(file: RawFile, target: Path) -> Path:
    """Fetch a file, check it, keep it in the cache."""
    try:
        with urllib.request.urlopen(file.url, timeout=SECONDS) as response:
            content = response.read(LARGEST_DOWNLOAD)
        if file.member:
            with zipfile.ZipFile(BytesIO(content)) as archive:
                inside = {name.rpartition("/")[2]: name for name in archive.namelist()}
                content = archive.read(inside[file.member])
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise _missing(file, f"no local copy, and the download failed ({error})") from error
    if (got := _sha256(content)) != file.sha256:
        raise _missing(file, f"a download with SHA-256 {got[:16]}… instead of {file.sha256[:16]}…")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, content)
    return target


def cached(name: str, fingerprint: dict[str, Any], make: Callable[[], PackedGraphs]) -> PackedGraphs:
    """The graphs that `make` gives, kept in the cache under a name that depends on `fingerprint`.

    A cache that cannot be written to is done without.
    """
    key = _sha256(repr((FORMAT, sorted(fingerprint.items()))).encode())[:12]
    folder = cache_folder() / f"{name}-{key}"
    if read_meta(folder) is not None:
        return open_arrays(folder, np.load(folder / FEATURES, allow_pickle=False))
    graphs = make()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{name}-", suffix=".partial"))
    except OSError:
        return graphs
    try:
        save(graphs, partial, fingerprint)
        partial.rename(folder)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
    return graphs
