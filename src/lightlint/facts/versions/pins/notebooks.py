"""What a project's notebooks were run with: its scripts are of the same days, and mostly ran in the same environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lightlint.facts.versions.pins.folders import entries_of, upper_folders
from lightlint.facts.versions.pins.pin import Kind, Pin, canonical
from lightlint.facts.versions.pins.reading import text_of

_MOST_FILES = 10
_TRAINS = re.compile(r"\b(?:import|from) (?:torch|pytorch_lightning|lightning|transformers|fastai)\b")


@cache
def pins_of_notebooks(directory: Path) -> tuple[Pin, ...]:
    """The Python, and what else outputs tell, that the notebooks of a directory and of folders of notebooks in it were run with.

    Cached; `pins_of_notebooks.cache_clear()` forgets it.
    """
    folders = (directory, *(each for each in upper_folders(directory)[1:] if _is_of_notebooks(each)))
    files = [file for folder in folders for file in entries_of(folder)[0] if file.suffix == ".ipynb"]
    return tuple(dict.fromkeys(pin for file in files[:_MOST_FILES] for pin in _told_by(file)))


def _is_of_notebooks(folder: Path) -> bool:
    """Whether a folder has no scripts, with which it would be a part that stands for itself."""
    return not folder.name.startswith(".") and all(file.suffix != ".py" for file in entries_of(folder)[0])


def _told_by(file: Path) -> Iterator[Pin]:
    text = text_of(file, large=True) or ""
    if not _TRAINS.search(text):
        return
    from lightlint.sources.notebook import installed_in, ran_with

    if version := ran_with(text):
        yield Pin("python", version, file, 1, kind=Kind.PROSE)
    for each in installed_in(text):
        name, _, version = each.partition("==")
        yield Pin(canonical(name), f"=={version}", file, 1, kind=Kind.PROSE)
