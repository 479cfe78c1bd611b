"""Requirements files, constraints, and the lists that `pip freeze` and `conda list` write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lightlint.facts.versions.pins.pin import Kind, Pin, canonical, pin_of, pip_pins, wheels_pins
from lightlint.facts.versions.pins.reading import inside, text_of
from lightlint.facts.versions.requirements import parse_requirement

# Requirements files for work on the project, not for running it.
_ASIDE = re.compile(r"(?:^|[-_.])(?:docs?|readthedocs|rtd|tests?|dev|develop|typing|types|lint|ci|build)(?:[-_.]|$)")
_INCLUDE = re.compile(r"(?:-r|-c|--requirement|--constraint)[\s=]*(\S+)")
_EDITABLE = re.compile(r"^(?:-e|--editable)[\s=]+(?=git\+)")
_AS_CONDA = re.compile(r"^([\w.-]+)\s*=\s*(\d[^=\s]*)(?:=\S*)?$")  # pip refuses it, and it is clear
_AS_TABLE = re.compile(r"^([A-Za-z][\w.-]*)\s+(\d[\w.+]*)(?:\s+\S+){0,2}$")  # what `pip list` and `conda list` print
_AS_WORDS = re.compile(
    r"^([A-Za-z][\w.-]*?)(?:\s*:\s*|\s*\(|-)v?(\d+(?:\.\d+)+)\)?$"
)  # as people write and `pip list` once printed
_COMMENTED = re.compile(
    r"\s*#+\s*(?:pip3?\s+(?:install|download)\s+(?:-\S+\s+)*)?((?:py)?torch\w*|pytorch-lightning|lightning)\s*(==?)\s*(\d[\w.+]*)",
    re.IGNORECASE,
)
_AS_COMMAND = re.compile(
    r"^(?:pip3?|conda|(?:micro)?mamba|uv pip) install\s+(?=[A-Za-z\"'])"
)  # people paste what they ran
_DEEPEST = 8


def requirement_pins(file: Path, text: str, seen: frozenset[Path] = frozenset()) -> Iterator[Pin]:
    """The pins of a requirements file and of what it includes by `-r` and `-c`."""
    aside = bool(_ASIDE.search(file.stem))
    for row, line in enumerate(text.splitlines(), 1):
        yield from _commented_out(file, row, line)
        line = re.sub(r"(^|\s)#.*", "", line).rstrip("\\").strip()
        if include := _INCLUDE.match(line):
            yield from included(file.parent / include[1].strip("\"'"), file, seen | {file})
            continue
        yield from wheels_pins(file, row, line, conditional=aside)
        line = _EDITABLE.sub("", line)
        if line and not line.startswith("-"):
            yield from line_pins(file, row, line, conditional=aside)


def _commented_out(file: Path, row: int, line: str) -> Iterator[Pin]:
    """The version that a comment names: of what is to be installed by hand, or was once."""
    if found := _COMMENTED.match(line):
        for pin in pin_of(file, row, parse_requirement(f"{canonical(found[1])}=={found[3]}")):
            yield replace(pin, kind=Kind.PROSE)


def included(path: Path, by: Path, seen: frozenset[Path] = frozenset()) -> Iterator[Pin]:
    """The pins of a requirements file that another file names, if it lies in the same project."""
    other = inside(path, by.parent)
    if other is None or other in seen or len(seen) > _DEEPEST:
        return
    text = text_of(other)
    if text is not None:
        yield from requirement_pins(other, text, seen)


def line_pins(file: Path, row: int, line: str, *, conditional: bool = False) -> Iterator[Pin]:
    """The pin of one line, as pip, conda or a listing writes it."""
    if "conda.anaconda.org/" in line or ("://" not in line and line.endswith((".conda", ".tar.bz2"))):
        yield from package_pins(file, row, line)
        return
    line = _AS_COMMAND.sub("", line)
    if found := _AS_CONDA.match(line) or _AS_TABLE.match(line) or _AS_WORDS.match(line):
        yield from pin_of(file, row, parse_requirement(f"{found[1]}=={found[2]}"), conditional=conditional)
    else:
        yield from pip_pins(file, row, parse_requirement(re.split(r"\s--?\w", line)[0]), conditional=conditional)


def package_pins(file: Path, row: int, address: str, *, locked: bool = True) -> Iterator[Pin]:
    """The pin of a conda package's address: `.../pytorch-1.10.2-py3.8_cuda11.3_0.tar.bz2`."""
    found = re.search(r"([A-Za-z][\w.-]*?)-(\d[^-/\s]*)-[^-/\s]+?\.(?:conda|tar\.bz2)", address.rpartition("/")[2])
    for requirement in [parse_requirement(f"{canonical(found[1])}=={found[2]}")] if found else ():
        for pin in pin_of(file, row, requirement):
            yield Pin(pin.name, pin.specifier, file, row, locked=locked)
