"""What a job is told besides what it installs: modules of a cluster, environments and images by their names, hosts of notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from lightlint.facts.versions.pins.formats.commands import Line
from lightlint.facts.versions.pins.formats.images import image_pins
from lightlint.facts.versions.pins.formats.variables import Variables
from lightlint.facts.versions.pins.pin import Kind, Pin, canonical

_TELLS = re.compile(r"torch|transformers_version", re.IGNORECASE)
_MODULES = re.compile(r"(?<![\w-])(?:module\s+(?:-\w+\s+)*(?:load|add|swap|switch)|ml(?:\s+load)?)\s+([^;&|\n`]+)")
_MODULE = re.compile(
    r"(?<!\S)(?:[\w.-]+/)*py-?torch[\w-]*/(?:py[\d.]+/)?v?([012]\.\d{1,2}(?:\.\d+)?)(?![\d.]*\d)", re.IGNORECASE
)
_PYTHON_MODULE = re.compile(r"(?<!\S)(?:[\w.-]+/)*(?:cray-)?python3?[/-]v?(3\.\d{1,2})(?!\d)", re.IGNORECASE)
_CONDA_ENVIRONMENT = re.compile(r"(?<![\w-])(?:(?:conda|mamba)\s+activate|(?:source|\.)\s+activate)\b")
_ENVIRONMENT = re.compile(  # by its name, or its folder
    r"(?<![\w-])(?:activate|workon|(?:conda|mamba)\s+run\s+(?:-\S+\s+)*?(?:-n|-p|--name|--prefix))[\s=]+[\"']?(\S+)"
    r"|(?<![\w-])(?:source|\.)\s+[\"']?(\S+)/bin/activate"
)
_TORCH_OF = re.compile(r"torch[-_=]?v?([012]\.\d{1,2}(?:\.\d+)?)(?!\d)", re.IGNORECASE)
_PYTHON_OF = re.compile(r"(?:(?<![a-z])py(?:thon)?[-_]?|(?<=_)p)3[._]?([4-9]|1\d)(?!\d)", re.IGNORECASE)
_FLOYD = re.compile(r"\bfloyd\s+run\b.*?--env[\s=]+pytorch-(\d\.\d+)")
_OF_SAGEMAKER = re.compile(
    r"\s*(pytorch|transformers)_version\s*:\s*[\"']?(\d\.\d+(?:\.\d+)?)(?![\w.])"
)  # as Accelerate is told
_IMAGE_FILE = re.compile(
    r"([\w.+-]*torch)(?:[_+-]?ngc)?[_+:-]?v?(\d[\w.-]*?)\.(?:sif|simg|img|sqsh|squashfs)\b", re.IGNORECASE
)
_UNTAGGED = re.compile(r"(?:[\w.-]+/)+pytorch-(?:[cg]pu|xla)\.(\d)-(\d{1,2})(?![\w:.-])")  # of Google, without a tag
_FAMILY = re.compile(r"(?<![\w/.-])pytorch-([12])-(\d{1,2})-(?:cu\d+|[cg]pu|xla)\b")  # of Google's machines
_OF_NVIDIA = re.compile(r"\d\d\.\d\d(?:\.\d+)?(?:-|$)")


def job_pins(file: Path, line: Line, kind: Kind) -> Iterator[Pin]:
    """The torch that a line of a text names so."""
    if not _TELLS.search(line.text):
        return
    row = line.row_of("torch")
    for found in (*_UNTAGGED.finditer(line.text), *_FAMILY.finditer(line.text)):
        yield Pin("torch", f"=={found[1]}.{found[2]}.*", file, row, kind=kind)
    if asked := _OF_SAGEMAKER.match(line.text):
        yield Pin(canonical(asked[1]), f"=={asked[2]}.*", file, row, kind=kind)
    for found in _FLOYD.finditer(line.text):
        yield Pin("torch", f"=={found[1]}.*", file, row, kind=kind)
    for found in _IMAGE_FILE.finditer(line.text):
        name = "nvcr.io/nvidia/pytorch" if _OF_NVIDIA.match(found[2]) else found[1]
        yield from (Pin(each, specifier, file, row, kind=kind) for each, specifier in image_pins(name, found[2]))
    for name in _environments(line.text):  # which may be older than what was put there
        yield from (Pin("torch", f"=={each}.*", file, row, kind=Kind.PROSE) for each in _TORCH_OF.findall(name)[:1])


def module_pins(file: Path, lines: Iterable[Line], kind: Kind) -> Iterator[Pin]:
    """The torch of the modules that a job loads; of a line that is commented out, where no other loads one, what was once new
    enough: what is loaded now may be newer."""
    loading = [(line, version) for line in lines if _TELLS.search(line.text) for version in _modules(line.text)]
    loaded = [(line, version) for line, version in loading if not line.text.lstrip().startswith("#")]
    for line, version in loaded:
        yield Pin("torch", f"=={version}.*", file, line.row_of("torch"), kind=kind)
    for line, version in loading if not loaded else ():
        yield Pin("torch", f">={version}", file, line.row_of("torch"), kind=kind)


def python_pins(file: Path, lines: Iterable[Line]) -> Iterator[Pin]:
    """The Python of the modules that a job loads, or of conda's environment that it turns to, by its name."""
    running = [line for line in lines if not line.text.lstrip().startswith("#")]
    named = [(line, each) for line in running for name in _environments(line.text) for each in _PYTHON_OF.findall(name)]
    for line, minor in named:
        yield Pin("python", f"3.{minor}", file, line.row_of("activate"), kind=Kind.PROSE)
    if named or any(_CONDA_ENVIRONMENT.search(line.text) for line in running):
        return
    for line in running:
        for loaded in _MODULES.finditer(line.text):
            row = line.row_of(loaded.group().split()[0])
            yield from (Pin("python", each, file, row, kind=Kind.PROSE) for each in _PYTHON_MODULE.findall(loaded[1]))


def spelled_out(line: Line, variables: Variables) -> list[Line]:
    """A line that names modules or an environment, with what its variables stand for."""
    if "$" not in line.text or not _NAMES_ONE.search(line.text):
        return [line]
    return [replace(line, text=each) for each in sorted(variables.meanings(line.text))]


_NAMES_ONE = re.compile(r"activate|workon|(?<![\w-])(?:module|ml|run)\s")


def _environments(text: str) -> Iterator[str]:
    """The names of the environments that a line turns to."""
    for found in _ENVIRONMENT.finditer(text):
        yield (found[1] or found[2]).rstrip("/\"'`;&)").rpartition("/")[2]


def _modules(text: str) -> Iterator[str]:
    for loaded in _MODULES.finditer(text):
        yield from _MODULE.findall(loaded[1])
