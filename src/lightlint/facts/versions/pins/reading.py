"""Reading what a project says of versions: bounded, inside of the project, and noted for the cache."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

from lightlint.facts.project.roots import nearest_with
from lightlint.memo.looked import looked

_LARGEST, _LARGEST_WRITTEN = 1_000_000, 20_000_000
_ABOVE = 3  # folders above a project's files in which its versions may stand, where no `.git` says where it ends
_SHALLOWEST = 3  # parts of a path: what lies in `/` or in a folder of it is no project's


def inside(path: Path, near: Path) -> Path | None:
    """The real path of a file of the project that a folder belongs to; None for one outside, or that is no file."""
    looked(path)
    try:
        real = path.resolve()
        top = top_of(near).resolve()
        return real if top in real.parents and real.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def top_of(directory: Path) -> Path:
    """Up to where files speak of the versions of code in a directory: the repository, else a few folders above it."""
    repository = nearest_with((".git",), directory)
    home = os.path.expanduser("~")  # noqa: PTH111
    if repository is not None and str(repository) != home:
        return repository
    top = directory
    for above in directory.parents[:_ABOVE]:
        if len(above.parts) < _SHALLOWEST or str(above) == home or home.startswith(f"{above}{os.sep}"):
            break
        top = above
    return top


def text_of(file: Path, *, large: bool = False) -> str | None:
    """The text of a file, None where it cannot be read or is too large to be one that people write, or a program where that is `large`."""
    looked(file)
    try:
        if file.stat().st_size > (_LARGEST_WRITTEN if large else _LARGEST):
            return None
        data = file.read_bytes()
    except (OSError, ValueError):
        return None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # as PowerShell writes what `pip freeze` prints
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")
