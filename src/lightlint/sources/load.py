"""From a path to a source: picks Python or notebook by the file's suffix."""

from __future__ import annotations

import os
from pathlib import Path

from lightlint.memo.looked import looked
from lightlint.sources.python import read_python
from lightlint.sources.source import Source, UnreadableError


def read(filename: str, data: bytes) -> Source:
    """The source of a file's bytes; `filename` tells a notebook from Python.

    Raises:
        UnreadableError: the bytes are not what the file's name promises.
    """
    if not filename.endswith(".ipynb"):
        return read_python(filename, data)
    from lightlint.sources.notebook import (
        read_notebook,  # its expressions take longer to compile than most files to lint
    )

    return read_notebook(filename, data)


def load(path: str | Path) -> Source:
    """The source of a file on disk.

    Raises:
        UnreadableError: the file cannot be opened, or is not what its name promises.
    """
    return read(os.fspath(path), bytes_of(path))


def bytes_of(path: str | Path) -> bytes:
    """What is in a file.

    Raises:
        UnreadableError: it cannot be opened.
    """
    looked(path)
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise UnreadableError(f"cannot be read: {reason or error}") from error
