"""Versions that a project's texts mention in a way that no reader of pins understands: `conda activate pytorch1.4`, `torch = 1.4 with
GPU support`.

Nobody can tell what such words say, but they are reason enough to claim nothing that only newer versions make true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from lightlint.facts.data.launches import SHELL_SCRIPTS
from lightlint.facts.versions.evidence import DISTRIBUTIONS
from lightlint.facts.versions.pins.folders import entries_of, inner_folders
from lightlint.facts.versions.pins.kinds import PROSE, is_page_of_news
from lightlint.facts.versions.pins.pin import Pin
from lightlint.facts.versions.pins.reading import inside, text_of
from lightlint.facts.versions.versions import Version

_TEXTS = PROSE | SHELL_SCRIPTS | {".yml", ".yaml", ".toml", ".cfg", ".def"}
_MOST_FILES, _LONGEST = 150, 60_000
_BETWEEN = r"(?:[\W_]{0,4}(?:version|ver|v|is|was|with|on|of|using|build|release|stable)?){0,4}[\W_]{0,3}"
_NAMES = {"torch": r"(?:py)?torch(?![a-z])"}
_MAJORS = {"torch": "[012]", "lightning": "[012]", "transformers": "[2-5]"}
_IS_OLDEST = re.compile(r">|\u2265|\bsince\b|\bleast\b|\babove\b|\bthan\b", re.IGNORECASE)
_AND_LATER = re.compile(r"(?:\.\w+)*\s*(?:\+|\(?(?:or|and)\s+(?:later|higher|above|newer|greater|up))", re.IGNORECASE)


def oldest_hint(package: str, top: Path) -> tuple[Version, Pin] | None:
    """The end of the oldest release that a text of the project names beside a package's name, and where it does."""
    found = [(Version(release).bumped(2), pin) for release, pin in hints_in(top).get(package, ())]
    return min(found, key=lambda each: each[0], default=None)


@cache
def hints_in(top: Path) -> dict[str, list[tuple[str, Pin]]]:
    """The releases that the texts of a project name, by package: each text is read once for all packages.

    Cached; `hints_in.cache_clear()` forgets it.
    """
    found: dict[str, list[tuple[str, Pin]]] = {}
    for file in islice(_texts(top), _MOST_FILES):
        real = inside(file, top)
        text = ((real and text_of(real)) or "")[:_LONGEST]
        for package in DISTRIBUTIONS:
            for each in _said(package).finditer(text):
                if not _IS_OLDEST.search(each[0]) and not _AND_LATER.match(text, each.end()):
                    pin = Pin(package, f"=={each[1]}.*", file, text.count("\n", 0, each.start()) + 1)
                    found.setdefault(package, []).append((each[1], pin))
    return found


@cache
def _said(package: str) -> re.Pattern[str]:
    """A package's name and a release behind it; compiled where a project has to be asked."""
    name, majors = _NAMES.get(package, package), _MAJORS.get(package, "[01]")
    return re.compile(
        rf"(?<![A-Za-z./-]){name}{_BETWEEN}({majors}\.\d{{1,2}})(?![\d])(?!\s*(?:GB|MB|%|s\b|x\b))", re.IGNORECASE
    )


def _texts(top: Path) -> Iterator[Path]:
    for folder in inner_folders(top):
        for file in entries_of(folder)[0]:
            if file.suffix.lower() in _TEXTS and not is_page_of_news(file):
                yield file
