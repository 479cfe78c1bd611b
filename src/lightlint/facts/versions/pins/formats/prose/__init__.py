"""The versions that a README names: in install commands and lists of what is needed, and, as the weakest evidence, in prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lightlint.facts.versions.pins.formats.containers import text_pins
from lightlint.facts.versions.pins.formats.prose.elsewhere import sends_elsewhere
from lightlint.facts.versions.pins.formats.prose.mentions import Mention, mentions, plain, versions_at
from lightlint.facts.versions.pins.formats.prose.paragraphs import Paragraph, is_aside, paragraphs
from lightlint.facts.versions.pins.pin import ELSEWHERE, Kind, Pin, canonical, is_pinned

_NEEDED = re.compile(  # `- PyTorch 1.8.1`, `* [torch](https://...) >= 1.7`, `torch==1.10.2`
    r"""^\s*(?:[-*+•]|\d+[.)]|\|)?\s*[\[`*]*(?:py-?torch[\s_-]?lightning|lightning|py-?torch|torch|torchvision|transformers|trl|peft|accelerate)[\]`*]*(?:\([^)]*\))?"""
    r"""[\s|:=(_\uff1a]*(?:version|v\.?|e\.g\.|i\.e\.)?[\s:=]*(?:[<>=~!]{1,2}|[≥≤])?\s*v?\d+\.\d+(?:\.\d+)?""",
    re.IGNORECASE,
)
_ROW_OF_TABLE = re.compile(  # of what `conda list`, `pip list` and `torch.utils.collect_env` print
    r"\s*(?:\[(?:conda|pip3?)\]\s+(?P<noted>[A-Za-z][\w.-]*?)(?:==|\s+)|(?P<listed>[A-Za-z][\w.-]*)\s{2,})"
    r"(?P<version>\d[\w.+!-]*)(?:\s+\S+){0,2}\s*"
)
_IN_PARENTHESES = re.compile(r"\([^()]*\)")
_MOST_BEHIND = 40  # characters behind a version in a list of what is needed; a longer line is prose


def readme_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of a README; what its prose mentions counts only where some of it says that the project needs it."""
    yield from text_pins(file, text, Kind.README)
    said: list[Mention] = []
    for paragraph in paragraphs(text):
        if sends_elsewhere(paragraph, file.parent.name):
            yield Pin(ELSEWHERE, ">=0", file, paragraph.row, kind=Kind.PROSE)
        listed = _listed(file, paragraph)
        yield from listed
        names = {pin.name for pin in listed}
        said += (each for each in mentions(paragraph) if each.name not in names)
    sure = {each.name for each in said if each.counts}
    for each in said:
        if each.name in sure:
            yield Pin(each.name, each.specifier, file, each.row, kind=Kind.PROSE)


def page_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of another page of a project, as on how to train: what it says is taken for prose."""
    for pin in readme_pins(file, text):
        if pin.name != ELSEWHERE:
            yield replace(pin, kind=Kind.PROSE)


def _listed(file: Path, paragraph: Paragraph) -> list[Pin]:
    """The pins of lines that name a package and a version, and hardly more."""
    pins: list[Pin] = []
    for row, line in enumerate(paragraph.text.splitlines(), paragraph.row):
        if printed := _ROW_OF_TABLE.fullmatch(line):
            pins += [] if paragraph.is_news else _printed(file, row, printed)
            continue
        line = plain(line)
        shape = _NEEDED.match(line)
        behind = _IN_PARENTHESES.sub("", line[shape.end() :]) if shape else ""
        if not shape or len(behind) > _MOST_BEHIND or "install" in line:
            continue
        found = versions_at(line)
        if found and not paragraph.is_news and not is_aside(line.partition("(")[0]):
            pins += (Pin(found[0], specifier, file, row, kind=Kind.README) for specifier in found[1])
    return pins


def _printed(file: Path, row: int, printed: re.Match[str]) -> Iterator[Pin]:
    name = canonical(printed["noted"] or printed["listed"])
    if is_pinned(name):
        version = printed["version"]
        yield Pin(name, f"=={version}" + ("" if version.count(".") > 1 else ".*"), file, row, kind=Kind.README)
