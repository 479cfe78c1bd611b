"""Dockerfiles and their kin: the images they start from, and what they install on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lightlint.facts.versions.pins.formats.commands import Line, line_pins, lines_of
from lightlint.facts.versions.pins.formats.images import IMAGE, image_pins
from lightlint.facts.versions.pins.formats.jobs import job_pins, module_pins, python_pins, spelled_out
from lightlint.facts.versions.pins.formats.variables import Variables
from lightlint.facts.versions.pins.pin import Kind, Pin

_MAY_NAME_IMAGE = re.compile(r"(?:torch|lightning)\S*:|(?i:image\b|from:|docker|singularity).*\$")
_PYTHON = re.compile(
    r"(?<=[\s/])python:(\d\.\d+)|(?<![a-z])py(?:thon)?[-_]?(3[._]?\d{1,2})(?!\d)"
)  # the image's name, or its tag
_CUDA = re.compile(r"\bnvidia/cuda:(\d{1,2}\.\d)")
_UBUNTU = re.compile(r"ubuntu[:-]?(\d\d\.\d\d)|(?<=ubuntu:)(\w+)")
_PYTHON_OF_UBUNTU = {"16.04": "3.5", "18.04": "3.6", "20.04": "3.8", "22.04": "3.10", "24.04": "3.12"}
_PYTHON_OF_UBUNTU |= {"xenial": "3.5", "bionic": "3.6", "focal": "3.8", "jammy": "3.10", "noble": "3.12"}
_INSTALLS_PYTHON = re.compile(r"\bapt(?:-get)?\b.*\binstall\b.*?\s(python3(?:\.\d+)?)(?:-\w+)?(?=[\s;&]|$)")
_OF_SYSTEM = "python of the system"
_OTHER_PYTHON = re.compile(r"conda|mamba|pyenv|deadsnakes|\buv\b|alternatives")
_TRIED = re.compile(  # the Pythons of a workflow or of Travis
    r"(?:python[-_]version[\"']?|^python)\s*:[ \t]*(\[[^\]]*\]|[\"']?3\.\d[^\n]*|(?:\n\s*-\s*[\"']?\d\.\d+[^\n]*)+)",
    re.MULTILINE,
)
_MINOR = re.compile(r"(?<![\d.])3\.\d{1,2}(?!\d)")
_FROM = re.compile(r"\s*FROM\s", re.IGNORECASE)


def dockerfile_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of each stage: what it installs counts instead of what its image brings along."""
    variables = Variables(text)
    stage: dict[str, list[Pin]] = {}
    system = ""  # the Python that the distribution of the stage's image has
    for line in lines_of(text):
        if line.text.lstrip().startswith("#"):
            continue
        if _FROM.match(line.text):
            yield from (pin for pins in stage.values() for pin in pins)
            stage = {}
            images = (*_image_pins(file, line, variables, Kind.IMAGE), *job_pins(file, line, Kind.IMAGE))
            for pin in (*images, *_python_pins(file, line)):
                stage.setdefault(pin.name, []).append(pin)
            ubuntu = _UBUNTU.search(line.text)
            system = _PYTHON_OF_UBUNTU.get(ubuntu[1] or ubuntu[2], "") if ubuntu else ""
            continue
        if _OTHER_PYTHON.search(line.text):
            system = ""
            stage.pop(_OF_SYSTEM, None)
        if "python" not in stage and (found := _INSTALLS_PYTHON.search(line.text)) and (system or "." in found[1]):
            version = found[1].removeprefix("python") if "." in found[1] else system
            stage[_OF_SYSTEM] = [Pin("python", version, file, line.row_of(found[1]), kind=Kind.IMAGE)]
        installed: dict[str, list[Pin]] = {}
        for pin in line_pins(file, line, variables, Kind.IMAGE):
            if pin.name not in stage or _replaces(pin):
                installed.setdefault(pin.name, []).append(pin)
        stage.update(installed)
    yield from (pin for pins in stage.values() for pin in pins)


def _python_pins(file: Path, line: Line) -> Iterator[Pin]:
    """The Python, or the CUDA, of an image by its name or tag: `FROM python:3.8-slim`, `miniconda3:py38_4.9`, `rapidsai:21.06-py3.8`."""
    if found := _CUDA.search(line.text):
        yield Pin("cuda", found[1], file, line.row_of(found[0]), kind=Kind.IMAGE)
    if found := _PYTHON.search(line.text.lower()):
        version = found[1] or f"3.{found[2][1:].lstrip('._')}"
        yield Pin("python", version, file, line.row_of(found[0]), kind=Kind.IMAGE)


def _replaces(pin: Pin) -> bool:
    """Whether an install puts another version in the place of what is there: `>=1.5` leaves it, and pip the Python."""
    if pin.name == "python" and pin.specifier.startswith("<"):
        return False
    return not pin.specifier.startswith((">", "!")) or "<" in pin.specifier


def text_pins(file: Path, text: str, kind: Kind) -> Iterator[Pin]:
    """The pins of install commands and of images that are named anywhere in a text."""
    variables = Variables(text)
    for found in _TRIED.finditer(text) if kind is Kind.CI else ():
        row = text.count("\n", 0, found.start()) + 1
        yield from (Pin("python", each, file, row, kind=kind) for each in _MINOR.findall(found[1]))
    lines = [(line, spelled_out(line, variables)) for line in lines_of(text)]
    spelled = [each for _, meant in lines for each in meant]
    yield from python_pins(file, spelled)
    yield from module_pins(file, spelled, kind)
    for line, meant in lines:
        yield from line_pins(file, line, variables, kind)
        for each in meant:
            yield from job_pins(file, each, kind)
        if _MAY_NAME_IMAGE.search(line.text):
            yield from _image_pins(file, line, variables, kind)


def _image_pins(file: Path, line: Line, variables: Variables, kind: Kind) -> Iterator[Pin]:
    for word in re.split(r"[\s\"'`,()=\[\]]+|docker:(?://)?(?!\d)", line.text):
        if ":" not in word and "$" not in word:
            continue
        for meaning in variables.meanings(word):
            named = meaning.partition("@")[0].replace(
                "#", "/", 1
            )  # as enroot writes it: `nvcr.io#nvidia/pytorch:20.12-py3`
            if image := IMAGE.fullmatch(named):
                for name, specifier in image_pins(image[1], image[2]):
                    yield Pin(name, specifier, file, line.row_of(word), kind=kind)
