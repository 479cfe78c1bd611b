"""What the files of a project pin torch, Lightning and what comes with them to, wherever projects write it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from enum import Enum
from functools import cache
from pathlib import Path

from lightlint.facts.versions.pins.folders import (
    Reach,
    entries_of,
    folders_for,
    inner_folders,
    is_project,
    run_folders,
    upper_folders,
)
from lightlint.facts.versions.pins.kinds import is_lock, is_of_ci, is_read_last, is_weak, reader_of
from lightlint.facts.versions.pins.pin import Kind, Pin, capping
from lightlint.facts.versions.pins.reading import text_of, top_of

__all__ = [
    "Kind",
    "Pin",
    "Reach",
    "Weight",
    "declared_within",
    "entries_of",
    "is_project",
    "pins_in",
    "pins_of_runs",
    "pins_of_settings",
    "top_of",
]

_MOST_FILES = 60
_WROTE = re.compile(r"# (?:pytorch_lightning|lightning\.pytorch|lightning)==(\d+\.\d+[\w.]*)\s")
_PROSE_ONLY = {"docs", "doc"}  # docs/requirements.txt is for building them
_ON_SETTING_UP = (
    "install",
    "get",
    "setup.md",
    "setup.rst",
    "setup-",
    "env",
    "prereq",
    "quick",
    "usage",
    "index.md",
    "index.rst",
)


# What stands in a file that names one of `PINNED`, or leads to another that may.
_NAMED = (
    "torch",
    "lightning",
    "transformers",
    "trl",
    "peft",
    "accelerate",
    "allennlp",
    "cuda",
    "fastai",
    "mmcv",
    "timm",
    "xformers",
    "-r",
    "-c",
)


class Weight(Enum):
    """Whether files decide, or are read only where those that do leave something open."""

    STRONG = "strong"
    WEAK = "weak"


@cache
def pins_in(directory: Path, reach: Reach = Reach.OWN, weight: Weight = Weight.STRONG) -> tuple[Pin, ...]:
    """The constraints that files of a directory state, or those of the folders beside them.

    Files that cannot be read or parsed state none, nor do links that lead out of the project. Cached;
    `pins_in.cache_clear()` and `entries_of.cache_clear()` forget what was read.
    """
    pins: list[Pin] = []
    for folder in folders_for(directory, reach):
        files = [file for file in entries_of(folder)[0] if is_weak(file) is (weight is Weight.WEAK)]
        files = [file for file in files if not _is_foreign(file, folder)]
        for file in sorted(files, key=is_read_last)[:_MOST_FILES]:
            pins += _read(file)
    return tuple(dict.fromkeys(pins))


@cache
def declared_within(top: Path) -> tuple[tuple[Pin, ...], ...]:
    """What each folder of a project declares, wherever it lies: a neighbour's requirements are not a file's own, and tell of
    the same days."""
    found = (pins_in(folder) for folder in inner_folders(top))
    return tuple(pins for pins in found if pins)


@cache
def pins_of_runs(top: Path) -> tuple[Pin, ...]:
    """What was installed when runs were made whose records lie in a project: once, and on some machine."""
    noted = (
        folder / name
        for folder in run_folders(top)
        for name in ("requirements.txt", "conda.yaml", "conda-environment.yaml")
    )
    return tuple(dict.fromkeys(replace(pin, kind=Kind.PROSE, of_run=True) for file in noted for pin in _read(file)))


@cache
def pins_of_settings(top: Path) -> tuple[Pin, ...]:
    """The Lightning whose command line wrote most of a project's settings files, as their first line says."""
    held = (file for folder in upper_folders(top) for file in entries_of(folder)[0])
    files = [file for file in held if file.suffix in (".yaml", ".yml")]
    heads = ((file, text_of(file)) for file in files[:_MOST_FILES])
    wrote = {file: found[1] for file, text in heads if text and (found := _WROTE.match(text))}
    usual = [version for version, _ in Counter(wrote.values()).most_common(1)]
    files = [file for file, version in wrote.items() if version in usual]
    return tuple(Pin("pytorch-lightning", f"=={wrote[file]}", file, 1, kind=Kind.PROSE) for file in files)


def _is_foreign(file: Path, folder: Path) -> bool:
    """Whether a file does not speak for the project: what builds its pages, or nothing that is read."""
    if folder.name.lower() in _PROSE_ONLY and not file.name.lower().startswith(_ON_SETTING_UP):
        return True
    return reader_of(file) is None


def _read(file: Path) -> list[Pin]:
    reader = reader_of(file)
    if reader is None or not file.is_file() or (file.is_symlink() and not _stays(file)):
        return []
    text = text_of(file, large=is_lock(file))
    if text is None:
        return []
    lower = text.lower()
    names_them = any(word in lower for word in (*_NAMED, *capping()))
    try:
        names_them = names_them or file.name in ("setup.py", ".python-version") or ".txt" in text or "python" in lower
        pins = [pin for pin in reader(file, text) if pin.specifier] if names_them else []
    except (OSError, ValueError, RecursionError):  # TOML's and JSON's errors are ValueErrors
        return []
    return [replace(pin, kind=min(pin.kind, Kind.CI)) for pin in pins] if is_of_ci(file) else pins


def _stays(link: Path) -> bool:
    """Whether a link leads to a file of the same project."""
    try:
        return top_of(link.parent).resolve() in link.resolve().parents
    except (OSError, RuntimeError):
        return False
