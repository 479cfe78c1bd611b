"""What the files of a directory pin torch and Lightning to: requirements, project metadata, lock files, environments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from lightlint.facts.requirements import Requirement, normalise, parse_pip_command, parse_requirement
from lightlint.looked import looked

__all__ = ["Pin", "Requirement", "parse_pip_command", "pins_in"]

# Conda's names for what PyPI calls torch.
_CONDA = {"pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch"}
# Requirements files for work on the project, not for running it.
_ASIDE = re.compile(r"(?:^|[-_.])(?:docs?|tests?|dev|develop|typing|types|lint|ci|build)(?:[-_.]|$)")
_PINNED = {"torch", "lightning", "pytorch-lightning", "lightning-fabric"}


@dataclass(frozen=True, slots=True)
class Pin:
    """A version constraint: which distribution, in which file and row (from 1).

    `locked` is the exact outcome of a resolver; `conditional` holds in some environments only.
    """

    name: str
    specifier: str
    file: Path
    row: int
    locked: bool = False
    conditional: bool = False


@cache
def pins_in(directory: Path) -> tuple[Pin, ...]:
    """The constraints on torch and Lightning that files of a directory (and its `requirements/`) state.

    Files that cannot be read or parsed state none. Cached; `pins_in.cache_clear()` forgets what was read.
    """
    pins: list[Pin] = []
    for file in _files(directory):
        reader = next((read for pattern, read in _READERS.items() if fnmatch(file.name, pattern)), None)
        if reader is None and file.parent.name == "requirements" and file.suffix == ".txt":
            reader = _requirements
        if reader:
            pins += _read(reader, file)
    return tuple(dict.fromkeys(pins))


def _files(directory: Path) -> list[Path]:
    inner = directory / "requirements"
    looked(directory)
    looked(inner)
    try:
        names = sorted(directory.iterdir())
        return names + (sorted(inner.iterdir()) if inner in names and inner.is_dir() else [])
    except OSError:
        return []


def _read(reader: Callable[[Path, str], Iterable[Pin]], file: Path) -> list[Pin]:
    looked(file)
    try:
        text = file.read_text("utf-8", errors="replace")
        relevant = reader is _requirements or "torch" in text or "lightning" in text.lower()
        return [pin for pin in reader(file, text) if pin.specifier] if relevant else []
    except (OSError, ValueError, SyntaxError, RecursionError):  # TOML's and JSON's errors are ValueErrors
        return []


def _pin(file: Path, row: int, requirement: Requirement | None, conditional: bool = False) -> Iterator[Pin]:
    if requirement and requirement.name in _PINNED:
        yield Pin(requirement.name, requirement.specifier, file, row, False, conditional or bool(requirement.marker))


def _row(text: str, needle: str) -> int:
    """The row where a piece of text first stands as a whole word."""
    found = re.search(rf"(?<![\w-]){re.escape(needle)}", text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _requirements(file: Path, text: str, seen: frozenset[Path] = frozenset()) -> Iterator[Pin]:
    """requirements.txt and what it includes by `-r` and `-c`."""
    aside = bool(_ASIDE.search(file.stem))
    for row, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", line).rstrip("\\").strip()
        if include := re.match(r"(?:-r|-c|--requirement|--constraint)[\s=]*(\S+)", line):
            other = (file.parent / include[1]).resolve()
            looked(other)
            if other not in seen and other.is_file():
                yield from _requirements(other, other.read_text("utf-8", errors="replace"), seen | {other})
        elif line and not line.startswith("-"):
            line = re.sub(
                r"^([\w.-]+)\s*=\s*(?=\d)", r"\1==", line
            )  # as conda writes it: pip refuses it, and it is clear
            yield from _pin(file, row, parse_requirement(re.split(r"\s--?\w", line)[0]), aside)


def _pyproject(file: Path, text: str) -> Iterator[Pin]:
    """PEP 621, dependency groups and the tables of Poetry, PDM, uv, Hatch and Pixi."""
    import tomllib

    data = tomllib.loads(text)
    project, tool = _table(data, "project"), _table(data, "tool")
    required: list[tuple[Any, bool]] = [(project.get("dependencies"), False)]
    required += [(group, True) for group in _table(project, "optional-dependencies").values()]
    required += [(group, True) for group in _table(data, "dependency-groups").values()]
    required += [(group, True) for group in _table(tool, "pdm", "dev-dependencies").values()]
    uv = _table(tool, "uv")
    required += [(uv.get(key), False) for key in ("constraint-dependencies", "override-dependencies")]
    required += [(uv.get("dev-dependencies"), True)]
    required += [
        (env.get("dependencies"), True) for env in _table(tool, "hatch", "envs").values() if isinstance(env, dict)
    ]
    for items, optional in required:
        for item in items if isinstance(items, list) else ():
            if isinstance(item, str):
                yield from _pin(file, _row(text, item.partition(";")[0].strip()), parse_requirement(item), optional)
    poetry = _table(tool, "poetry")
    tables = [(_table(poetry, "dependencies"), False), (_table(poetry, "dev-dependencies"), True)]
    tables += [(_table(poetry, "group", group, "dependencies"), True) for group in _table(poetry, "group")]
    for table, optional in tables:
        yield from _named(file, text, table, optional)
    for key in ("dependencies", "pypi-dependencies"):
        yield from _named(file, text, _table(tool, "pixi", key))


def _table(data: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """A nested table, empty where it is missing or no table."""
    for key in path:
        data = data.get(key, {}) if isinstance(data, dict) else {}
    return data if isinstance(data, dict) else {}


def _named(file: Path, text: str, table: Mapping[str, Any], optional: bool = False) -> Iterator[Pin]:
    """Tables of name = version, or name = {version = ...}, or a list of these for several environments."""
    for key, value in table.items():
        name = _CONDA.get(normalise(key), normalise(key))
        choices = value if isinstance(value, list) else [value]
        for choice in choices if name in _PINNED else ():
            details = choice if isinstance(choice, dict) else {"version": choice}
            conditional = optional or len(choices) > 1 or bool(details.keys() & {"optional", "markers", "python"})
            version = details.get("version")
            if isinstance(version, str):
                row = _row(text, f"{key} =") if f"{key} =" in text else _row(text, key)
                yield Pin(name, version, file, row, locked=file.suffix == ".lock", conditional=conditional)


def _pipfile(file: Path, text: str) -> Iterator[Pin]:
    import tomllib

    data = tomllib.loads(text)
    yield from _named(file, text, _table(data, "packages"))
    yield from _named(file, text, _table(data, "dev-packages"), optional=True)


def _pipfile_lock(file: Path, text: str) -> Iterator[Pin]:
    import json

    data = json.loads(text)
    yield from _named(file, text, _table(data, "default"))
    yield from _named(file, text, _table(data, "develop"))


def _lock(file: Path, text: str) -> Iterator[Pin]:
    """uv.lock, poetry.lock, pdm.lock and pylock.toml, by their lines: they are large and written by machines."""
    for entry in re.finditer(r'^\[\[packages?\]\]\s*\nname = "([^"]+)"\s*\nversion = "([^"]+)"', text, re.MULTILINE):
        name = normalise(entry[1])
        if name in _PINNED:
            row = text.count("\n", 0, entry.end()) + 1
            yield Pin(name, f"=={entry[2]}", file, row, locked=True)


def _setup_cfg(file: Path, text: str) -> Iterator[Pin]:
    for row, line in enumerate(text.splitlines(), 1):
        value = line.partition("=")[2] if line.startswith(("install_requires", "setup_requires")) else line
        if line[:1].isspace() or value is not line:
            yield from _pin(file, row, parse_requirement(value), conditional=True)


def _setup_py(file: Path, text: str) -> Iterator[Pin]:
    """The literal requirements of `setup(install_requires=..., extras_require=...)`."""
    import ast
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    values = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for keyword in (node for node in ast.walk(tree) if isinstance(node, ast.keyword)):
        if keyword.arg in {"install_requires", "extras_require"}:
            value = values.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else keyword.value
            for node in ast.walk(value) if value else ():
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield from _pin(file, node.lineno, parse_requirement(node.value), keyword.arg == "extras_require")


def _environment(file: Path, text: str) -> Iterator[Pin]:
    """Conda's environment.yml, by its lines: `- pytorch=2.1`, `- conda-forge::lightning >=2`, and pip's below `- pip:`."""
    for row, line in enumerate(text.splitlines(), 1):
        item = re.match(r"""\s*-\s*["']?(?:[\w./-]+::)?([A-Za-z][\w.-]*)\s*(\[[^\]]*\])?\s*([^"'#]*)""", line)
        if not item:
            continue
        name = normalise(item[1])
        name = _CONDA.get(name, name)
        version = re.sub(r"^(=?[^=<>!~\s]+)[=\s]\S*$", r"\1", item[3].strip())  # without the build string
        if name in _PINNED:
            yield Pin(name, version, file, row)


_READERS: dict[str, Callable[[Path, str], Iterable[Pin]]] = {
    "uv.lock": _lock,
    "poetry.lock": _lock,
    "pdm.lock": _lock,
    "pylock*.toml": _lock,
    "Pipfile.lock": _pipfile_lock,
    "Pipfile": _pipfile,
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup_cfg,
    "setup.py": _setup_py,
    "*requirements*.txt": _requirements,
    "constraints*.txt": _requirements,
    "environment*.y*ml": _environment,
    "conda*.y*ml": _environment,
    "env.y*ml": _environment,
}
