"""The pins of what is no file of requirements: a README's list of them, tox.ini's and setup.cfg's lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lightlint.facts.pins.containers import text_pins
from lightlint.facts.pins.pin import Kind, Pin, pin_of
from lightlint.facts.requirements import parse_requirement

_NEEDED = re.compile(  # `- PyTorch 1.8.1`, `* [torch](https://...) >= 1.7`, `torch==1.10.2`
    r"""^\s*(?:[-*+•]|\d+[.)]|\|)?\s*[\[`*]*(py-?torch[\s-]?lightning|lightning|py-?torch|torch|torchvision)[\]`*]*(?:\([^)]*\))?[\s|:=]*"""
    r"""(?:version|v\.?)?\s*((?:[<>=~!]{1,2})?)\s*v?(\d+\.\d+(?:\.\d+)?)(\+(?!cu|cpu))?(?!\w)""",
    re.IGNORECASE,
)
_MOST_BEHIND = 40  # characters behind a version in a list of what is needed; a longer line is prose


def readme_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of install commands, and of lists of what is needed."""
    yield from text_pins(file, text, Kind.README)
    for row, line in enumerate(text.splitlines(), 1):
        found = _NEEDED.match(line)
        if not found or len(line) - found.end() > _MOST_BEHIND or "install" in line:
            continue
        name = re.sub(r"[\s-]", "", found[1].lower())
        name = "pytorch-lightning" if name == "pytorchlightning" else {"pytorch": "torch"}.get(name, name)
        operator = found[2] or (">=" if found[4] else "")
        yield Pin(name, f"{operator}{found[3]}", file, row, kind=Kind.README)


def tox_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of tox.ini's `deps` and commands."""
    yield from text_pins(file, text, Kind.CI)
    for row, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"^(?:deps\s*=|[\w.{},!-]+\s*:(?!/))\s*", "", line.strip())
        for pin in pin_of(file, row, parse_requirement(line)):
            yield Pin(pin.name, pin.specifier, file, row, conditional=True, kind=Kind.CI)


def setup_cfg_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of setup.cfg; which section they stand in is not looked at."""
    for row, line in enumerate(text.splitlines(), 1):
        value = (
            line.partition("=")[2] if re.match(r"(?:install|setup|tests)_requires\b|[\w-]+\s*=\s*\w", line) else line
        )
        if line[:1].isspace() or value is not line:
            yield from pin_of(file, row, parse_requirement(value), conditional=True)
