"""Conda's environment files, by their lines: `- pytorch=2.1`, `- conda-forge::lightning >=2`, and pip's below `- pip:`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lightlint.facts.versions.pins.pin import Pin, canonical, is_pinned, pin_of, wheels_pins
from lightlint.facts.versions.requirements import parse_requirement

_ITEM = re.compile(r"""\s*-\s*["']?(?:[\w./-]+::)?([A-Za-z][\w.-]*)\s*(\[[^\]]*\])?\s*([^"'#]*)""")
_PYTHON_VERSION = re.compile(r"\s*python_version:\s*[\"']?(3\.\d{1,2})")  # of a cog.yaml
_LISTS = re.compile(r"^\s*(?:dependencies|requirements|packages|python_packages)\s*:", re.MULTILINE)


def lists_packages(text: str) -> bool:
    """Whether a YAML file says what is to be installed."""
    return bool(_LISTS.search(text))


def environment_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins in a YAML file's lists."""
    for row, line in enumerate(text.splitlines(), 1):
        if found := _PYTHON_VERSION.match(line):
            yield Pin("python", found[1], file, row)
        yield from wheels_pins(file, row, line)
        item = _ITEM.match(line)
        if not item:
            continue
        name = canonical(item[1])
        version = re.sub(r"^(=?[^=<>!~\s]+)[=\s]\S*$", r"\1", item[3].strip())  # without the build string
        if is_pinned(name) and re.match(r"[\d<>=!~]", version):
            yield Pin(name, version.split(";")[0].strip(), file, row)
        elif ".whl" in line or " @ " in line or "git+" in line:
            yield from pin_of(file, row, parse_requirement(line.partition("-")[2].strip().strip("\"'")))
