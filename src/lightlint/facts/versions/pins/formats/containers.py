"""Dockerfiles and their kin: the images they start from, and what they install on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lightlint.facts.versions.pins.formats.commands import Line, line_pins, lines_of
from lightlint.facts.versions.pins.formats.images import IMAGE, image_pins
from lightlint.facts.versions.pins.formats.variables import Variables
from lightlint.facts.versions.pins.pin import Kind, Pin

_MAY_NAME_IMAGE = re.compile(r"(?:torch|lightning)\S*:|(?i:image\b|from:|docker|singularity).*\$")
_PYTHON = re.compile(r"(?<=[\s/])python:(\d\.\d+)")
_FROM = re.compile(r"\s*FROM\s", re.IGNORECASE)


def dockerfile_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of each stage: what it installs counts instead of what its image brings along."""
    variables = Variables(text)
    stage: dict[str, list[Pin]] = {}
    for line in lines_of(text):
        if line.text.lstrip().startswith("#"):
            continue
        if _FROM.match(line.text):
            yield from (pin for pins in stage.values() for pin in pins)
            stage = {}
            for pin in (*_image_pins(file, line, variables, Kind.IMAGE), *_python_pins(file, line)):
                stage.setdefault(pin.name, []).append(pin)
            continue
        installed: dict[str, list[Pin]] = {}
        for pin in line_pins(file, line, variables, Kind.IMAGE):
            if pin.name not in stage or _replaces(pin):
                installed.setdefault(pin.name, []).append(pin)
        stage.update(installed)
    yield from (pin for pins in stage.values() for pin in pins)


def _python_pins(file: Path, line: Line) -> Iterator[Pin]:
    """The Python of an image that holds little else, `FROM python:3.8-slim`."""
    if found := _PYTHON.search(line.text):
        yield Pin("python", found[1], file, line.row_of(found[0]), kind=Kind.IMAGE)


def _replaces(pin: Pin) -> bool:
    """Whether an install puts another version in the place of what is there: `>=1.5` leaves it."""
    return not pin.specifier.startswith((">", "!")) or "<" in pin.specifier


def text_pins(file: Path, text: str, kind: Kind) -> Iterator[Pin]:
    """The pins of install commands and of images that are named anywhere in a text."""
    variables = Variables(text)
    for line in lines_of(text):
        yield from line_pins(file, line, variables, kind)
        if _MAY_NAME_IMAGE.search(line.text):
            yield from _image_pins(file, line, variables, kind)


def _image_pins(file: Path, line: Line, variables: Variables, kind: Kind) -> Iterator[Pin]:
    for word in re.split(r"[\s\"'`,()=\[\]]+|docker://", line.text):
        if ":" not in word and "$" not in word:
            continue
        for meaning in variables.meanings(word):
            if image := IMAGE.fullmatch(meaning.partition("@")[0]):
                for name, specifier in image_pins(image[1], image[2]):
                    yield Pin(name, specifier, file, line.row_of(word), kind=kind)
