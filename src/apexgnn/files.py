"""Files that appear whole or not at all.

The bytes go to a neighbour named `….partial`, are flushed to the disk, and then take the file's name in one
rename. A reader sees the old file or the new one; a crash, a full disk or a second writer cannot leave half.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write `content` (text as UTF-8) to `path`, whole or not at all.

    Args:
        path: the file; its folder must exist.
        content: all of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "note.txt", "whole")
    ...     print([f.name for f in Path(folder).iterdir()], (Path(folder) / "note.txt").read_text())
    ['note.txt'] whole
    """
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(partial, 0o666 & ~_umask())
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The process's umask, which mkstemp ignores: a file made here is as readable as any other."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
