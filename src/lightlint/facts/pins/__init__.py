"""What the files of a project pin torch, Lightning and what comes with them to, wherever projects write it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from lightlint.facts.pins.folders import Reach, entries_of, folders_for, is_project
from lightlint.facts.pins.kinds import is_lock, reader_of
from lightlint.facts.pins.pin import Kind, Pin
from lightlint.facts.pins.reading import text_of, top_of

__all__ = ["Kind", "Pin", "Reach", "entries_of", "is_project", "pins_in", "top_of"]

_MOST_FILES = 60
_OF_CI = frozenset((".circleci", ".github"))
_PROSE_ONLY = {"docs", "doc"}  # docs/requirements.txt is for building them


@cache
def pins_in(directory: Path, reach: Reach = Reach.OWN) -> tuple[Pin, ...]:
    """The constraints that files of a directory state, or those of the folders beside them.

    Files that cannot be read or parsed state none, nor do links that lead out of the project. Cached;
    `pins_in.cache_clear()` and `entries_of.cache_clear()` forget what was read.
    """
    pins: list[Pin] = []
    for folder in folders_for(directory, reach):
        files = [file for file in entries_of(folder)[0] if not _is_foreign(file, folder)]
        for file in files[:_MOST_FILES]:
            pins += _read(file)
    return tuple(dict.fromkeys(pins))


def _is_foreign(file: Path, folder: Path) -> bool:
    """Whether a file does not speak for the project: what builds its pages, or nothing that is read."""
    if folder.name.lower() in _PROSE_ONLY and not file.name.lower().startswith(("install", "get")):
        return True
    return reader_of(file) is None


def _read(file: Path) -> list[Pin]:
    reader = reader_of(file)
    if reader is None or not file.is_file() or (file.is_symlink() and not _stays(file)):
        return []
    text = text_of(file, lock=is_lock(file))
    if text is None:
        return []
    names_them = "torch" in text.lower() or "lightning" in text.lower() or "-r" in text or "-c" in text
    try:
        names_them = names_them or file.name == "setup.py" or ".txt" in text
        pins = [pin for pin in reader(file, text) if pin.specifier] if names_them else []
    except (OSError, ValueError, RecursionError):  # TOML's and JSON's errors are ValueErrors
        return []
    if _OF_CI.isdisjoint(file.parts):
        return pins
    return [replace(pin, kind=min(pin.kind, Kind.CI)) for pin in pins]


def _stays(link: Path) -> bool:
    """Whether a link leads to a file of the same project."""
    try:
        return top_of(link.parent).resolve() in link.resolve().parents
    except (OSError, RuntimeError):
        return False
