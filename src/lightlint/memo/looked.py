"""The paths that a run looked at: all that its findings can hang on besides the text of the files themselves.

Whoever reads a file, lists a folder or asks whether something exists on behalf of a finding says so here; the cache then
knows what has to be as it was for the findings to stand.
"""

from __future__ import annotations

import os

LOOKED: set[str] = set()


def looked(path: str | os.PathLike[str]) -> None:
    """Note a path that was read, listed, or found missing."""
    LOOKED.add(os.fspath(path))
