"""Where the project of a file begins."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lightlint.memo.looked import looked

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_LISTS = ("requirements.txt", "environment.yml", "environment.yaml", "Pipfile")  # where nothing better marks a project
_LICENSES = ("LICENSE", "LICENSE.md", "LICENSE.txt", "COPYING")  # which a downloaded archive still has


@cache
def root_of(directory: Path) -> Path:
    """The top of a directory's project: the nearest with a project file, else with requirements, else with a license, else where packages start."""
    top = nearest_with(_MARKERS, directory) or nearest_with(_LISTS, directory) or nearest_with(_LICENSES, directory)
    if top is not None:
        return top
    top = directory
    while exists(top / "__init__.py") and top.parent != top:
        top = top.parent
    return top


@cache
def nearest_with(names: tuple[str, ...], directory: Path) -> Path | None:
    """The nearest directory, this one or above, that holds one of some names."""
    if any(exists(directory / name) for name in names):
        return directory
    return nearest_with(names, directory.parent) if directory.parent != directory else None


def exists(path: Path) -> bool:
    """Whether a path is there; a cache learns that this was asked."""
    there = path.exists()
    looked(path / "HEAD" if there and path.is_dir() else path)  # git writes to its folder itself all the time
    return there
