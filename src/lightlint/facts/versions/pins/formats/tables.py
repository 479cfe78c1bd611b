"""Pins in TOML and JSON: pyproject.toml of every tool, Pipfile, pixi.toml, and the lock files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lightlint.facts.versions.pins.formats.requirement_files import included, package_pins
from lightlint.facts.versions.pins.pin import Pin, canonical, is_pinned, pin_of, pip_pins
from lightlint.facts.versions.requirements import normalise, parse_requirement

_REQUIRED = (  # where a project says what it cannot do without
    ("project", "dependencies"),
    ("tool", "poetry", "dependencies"),
    ("tool", "pixi", "dependencies"),
    ("tool", "pixi", "pypi-dependencies"),
    ("tool", "uv", "constraint-dependencies"),
    ("tool", "uv", "override-dependencies"),
    ("tool", "flit", "metadata", "requires"),
    ("dependencies",),  # pixi.toml
    ("pypi-dependencies",),
    ("packages",),  # Pipfile
    ("default",),  # Pipfile.lock
)
_TABLES = re.compile("dependencies|packages|requires|default|develop|sources")
_PYTHON_KEYS = {"requires-python", "python_version", "python_full_version"}  # of [project], of Pipfile's [requires]
_DEEPEST = 8
_ENTRY = re.compile(
    r"^\[\[packages?\]\][^\n]*\n(?:[^\[\n][^\n]*\n?)+", re.MULTILINE
)  # Poetry before 1.2 begins with the category
_SAID = re.compile(r'^(name|version) = "([^"]+)"', re.MULTILINE)


def toml_pins(file: Path, text: str) -> Iterator[Pin]:
    """Requirements in lists, and tables of names with versions, wherever a tool keeps them."""
    import tomllib

    data = tomllib.loads(text)
    yield from _walk(file, text, data, ())
    dynamic = _table(data, "tool", "setuptools", "dynamic", "dependencies").get("file", ())
    hatch = _table(data, "tool", "hatch", "metadata", "hooks", "requirements_txt").get("files", ())
    for named in (dynamic, hatch):
        for each in [named] if isinstance(named, str) else named if isinstance(named, list) else ():
            if isinstance(each, str):
                yield from included(file.parent / each, file)


def json_lock_pins(file: Path, text: str) -> Iterator[Pin]:
    """The pins of Pipfile.lock."""
    import json

    yield from _walk(file, text, json.loads(text), ())


def _walk(file: Path, text: str, value: Any, path: tuple[str, ...]) -> Iterator[Pin]:
    if path[:2] == ("tool", "lightlint") or len(path) > _DEEPEST:
        return
    conditional = path not in _REQUIRED
    if isinstance(value, list):
        for item in value:
            if isinstance(item, str):
                row = _row(text, item.partition(";")[0].strip())
                yield from pip_pins(file, row, parse_requirement(item), conditional=conditional)
    elif isinstance(value, dict):
        holds_versions = bool(path) and bool(_TABLES.search(path[-1]))
        for key, inner in value.items():
            if key in _PYTHON_KEYS and isinstance(inner, str):
                yield Pin("python", inner, file, _row(text, key), conditional=False)
            elif holds_versions and is_pinned(canonical(key)) and not _is_table_of_lists(inner):
                yield from _named(file, text, key, inner, conditional=conditional)
            else:
                yield from _walk(file, text, inner, (*path, str(key)))


def _is_table_of_lists(value: Any) -> bool:
    """Whether what a package's name stands for is an extra of that name, `torch = ["torch==2.1"]`."""
    return isinstance(value, list) and any(isinstance(each, str) for each in value)


def _table(data: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """A nested table, empty where it is missing or no table."""
    for key in path:
        data = data.get(key, {}) if isinstance(data, dict) else {}
    return data if isinstance(data, dict) else {}


def _row(text: str, needle: str) -> int:
    """The row where a piece of text first stands as a whole word."""
    found = re.search(rf"(?<![\w-]){re.escape(needle)}", text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _named(file: Path, text: str, key: str, value: Any, *, conditional: bool) -> Iterator[Pin]:
    """What a name stands for: a version, or {version = ...}, {url = ...}, or a list of these for several environments."""
    choices = value if isinstance(value, list) else [value]
    row = _row(text, f"{key} =") if f"{key} =" in text else _row(text, key)
    for choice in choices:
        details = choice if isinstance(choice, dict) else {"version": choice}
        in_some = conditional or len(choices) > 1 or bool(details.keys() & {"optional", "markers", "python"})
        version, url, git = (details.get(each) for each in ("version", "url", "git"))
        if isinstance(version, str):
            yield Pin(canonical(key), version, file, row, locked=file.suffix == ".lock", conditional=in_some)
        elif isinstance(git, str):
            at = "".join(f"@{details[each]}" for each in ("rev", "tag", "branch") if each in details)
            yield from pin_of(file, row, parse_requirement(f"{key} @ git+{git}{at}"), conditional=in_some)
        elif isinstance(url, str):
            yield from pin_of(file, row, parse_requirement(url), conditional=in_some)


def lock_pins(file: Path, text: str) -> Iterator[Pin]:
    """uv.lock, poetry.lock, pdm.lock and pylock.toml, by their lines: they are large and written by machines."""
    for entry in _ENTRY.finditer(text):
        said = {each[1]: each for each in _SAID.finditer(text, *entry.span())}
        if len(said) == 2 and is_pinned(normalise(said["name"][2])):
            row = text.count("\n", 0, said["version"].start()) + 1
            yield Pin(normalise(said["name"][2]), f"=={said['version'][2]}", file, row, locked=True)


def conda_lock_pins(file: Path, text: str) -> Iterator[Pin]:
    """pixi.lock, conda-lock.yml and lists of addresses: a name and a version, or a package's address, on a line."""
    name, row_of_name = "", 0
    for row, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"\s*-?\s*(name|version|conda|pypi|url|http\S*):?\s*(\S*)", line):
            key, value = found[1], found[2].strip("\"'")
            if key == "name":
                name, row_of_name = canonical(value), row
            elif key == "version" and is_pinned(name) and row - row_of_name < 4:
                yield Pin(name, f"=={value}", file, row, locked=True)
            elif ".whl" in line:
                for pin in pin_of(file, row, parse_requirement(line.split()[-1].partition("#")[0])):
                    yield Pin(pin.name, pin.specifier, file, row, locked=True)
            elif ".conda" in line or ".tar.bz2" in line:
                yield from package_pins(file, row, line.split()[-1].partition("#")[0])
