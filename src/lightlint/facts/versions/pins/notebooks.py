"""What a project's notebooks were run with: its scripts are of the same days, and mostly ran in the same environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from lightlint.facts.versions.pins.folders import entries_of, upper_folders
from lightlint.facts.versions.pins.pin import Kind, Pin, canonical
from lightlint.facts.versions.pins.reading import text_of

_MOST_FILES = 10
_TRAINS = re.compile(r"\b(?:import|from) (?:torch|pytorch_lightning|lightning|transformers|fastai)\b")


@cache
def pins_of_notebooks(directory: Path) -> tuple[Pin, ...]:
    """What the notebooks of a directory say they were run with, and the Python of those in folders of notebooks in it.

    Cached; `pins_of_notebooks.cache_clear()` forgets it.
    """
    own = _notebooks_in(directory)
    others = (file for each in upper_folders(directory)[1:] if _is_of_notebooks(each) for file in _notebooks_in(each))
    told = [pin for file in own[:_MOST_FILES] for pin in _told_by(file)]
    told += [pin for file in islice(others, _MOST_FILES) for pin in _told_by(file) if pin.name == "python"]
    return tuple(dict.fromkeys(told))


def _notebooks_in(folder: Path) -> list[Path]:
    return [file for file in entries_of(folder)[0] if file.suffix == ".ipynb"]


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
