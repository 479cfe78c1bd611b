"""The pins of short lists: tox.ini, setup.cfg, a version of Python in a file of its own, FloydHub's environment, a notebook that runs scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lightlint.facts.versions.pins.formats.containers import text_pins
from lightlint.facts.versions.pins.pin import Kind, Pin, pin_of
from lightlint.facts.versions.requirements import parse_requirement

_RUNS_SCRIPT = re.compile(r"[!%](?:[^\n\"]*\s)?(?:python3?|run)\s+(?:-\w+\s+)*[\w./-]+\.py\b")
_INSTALLS = re.compile(r"[!%][^\n\"]*\binstall\b")


def tox_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of tox.ini's `deps` and commands."""
    yield from text_pins(file, text, Kind.CI)
    for row, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"^(?:deps\s*=|[\w.{},!-]+\s*:(?!/))\s*", "", line.strip())
        for pin in pin_of(file, row, parse_requirement(line)):
            yield Pin(pin.name, pin.specifier, file, row, conditional=True, kind=Kind.CI)


def python_version_pins(file: Path, text: str) -> Iterator[Pin]:
    """The Python that pyenv, uv or a host of notebooks is told: `.python-version`, `runtime.txt`."""
    if found := re.match(r"\s*(?:c?python-?)?(3\.\d{1,2})(?![\d])", text):
        yield Pin("python", found[1], file, 1)


def setup_cfg_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of setup.cfg; which section they stand in is not looked at."""
    for row, line in enumerate(text.splitlines(), 1):
        value = (
            line.partition("=")[2] if re.match(r"(?:install|setup|tests)_requires\b|[\w-]+\s*=\s*\w", line) else line
        )
        if re.match(r"python_requires\b", line):
            yield Pin("python", value.strip() or line.partition("=")[2].strip(), file, row)
        elif line[:1].isspace() or value is not line:
            yield from pin_of(file, row, parse_requirement(value), conditional=True)


def floyd_pins(file: Path, text: str) -> Iterator[Pin]:
    """The torch of the environment that FloydHub was asked for: `env: pytorch-0.4`."""
    for row, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"env\s*:\s*['\"]?pytorch-(\d+\.\d+)", line):
            yield Pin("torch", f"=={found[1]}.*", file, row, kind=Kind.IMAGE)


def notebook_pins(file: Path, text: str) -> Iterator[Pin]:
    """What a notebook installs that runs the scripts of a project: one way to run them among others."""
    if not (_RUNS_SCRIPT.search(text) and _INSTALLS.search(text)):
        return
    import json

    cells = json.loads(text).get("cells", ())
    code = "\n".join("".join(each.get("source", ())) for each in cells if each.get("cell_type") == "code")
    if _RUNS_SCRIPT.search(code):
        yield from text_pins(file, code, Kind.README)
