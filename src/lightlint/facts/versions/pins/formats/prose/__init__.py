"""The versions that a README names: in install commands and lists of what is needed, and, as the weakest evidence, in prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lightlint.facts.versions.pins.formats.containers import text_pins
from lightlint.facts.versions.pins.formats.prose.mentions import Mention, mentions, plain, versions_at
from lightlint.facts.versions.pins.formats.prose.paragraphs import Paragraph, is_aside, paragraphs
from lightlint.facts.versions.pins.pin import Kind, Pin

_NEEDED = re.compile(  # `- PyTorch 1.8.1`, `* [torch](https://...) >= 1.7`, `torch==1.10.2`
    r"""^\s*(?:[-*+•]|\d+[.)]|\|)?\s*[\[`*]*(?:py-?torch[\s_-]?lightning|lightning|py-?torch|torch|torchvision|transformers|trl|peft|accelerate)[\]`*]*(?:\([^)]*\))?"""
    r"""[\s|:=(]*(?:version|v\.?|e\.g\.|i\.e\.)?\s*(?:[<>=~!]{1,2}|[≥≤])?\s*v?\d+\.\d+(?:\.\d+)?""",
    re.IGNORECASE,
)
_IN_PARENTHESES = re.compile(r"\([^()]*\)")
_MOST_BEHIND = 40  # characters behind a version in a list of what is needed; a longer line is prose


def readme_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of a README; what its prose mentions counts only where some of it says that the project needs it."""
    yield from text_pins(file, text, Kind.README)
    said: list[Mention] = []
    for paragraph in paragraphs(text):
        listed = _listed(file, paragraph)
        yield from listed
        if not listed:
            said += mentions(paragraph)
    sure = {each.name for each in said if each.counts}
    for each in said:
        if each.name in sure:
            yield Pin(each.name, each.specifier, file, each.row, kind=Kind.PROSE)


def page_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of another page of a project, as on how to train: what it says is taken for prose."""
    for pin in readme_pins(file, text):
        yield replace(pin, kind=Kind.PROSE)


def _listed(file: Path, paragraph: Paragraph) -> list[Pin]:
    """The pins of lines that name a package and a version, and hardly more."""
    pins: list[Pin] = []
    for row, line in enumerate(paragraph.text.splitlines(), paragraph.row):
        line = plain(line)
        shape = _NEEDED.match(line)
        behind = _IN_PARENTHESES.sub("", line[shape.end() :]) if shape else ""
        if not shape or len(behind) > _MOST_BEHIND or "install" in line:
            continue
        found = versions_at(line)
        if found and not paragraph.is_news and not is_aside(line.partition("(")[0]):
            pins += (Pin(found[0], specifier, file, row, kind=Kind.README) for specifier in found[1])
    return pins
