"""One of two environments, from whatever describes it: a snapshot, what pip lists, pins, a notebook's installs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightlint.environment.describing.probe import SCHEMA
from lightlint.facts.versions.requirements import normalise, parse_pip_command, parse_requirement
from lightlint.sources.load import load
from lightlint.sources.source import UnreadableError

_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\]\s*)?(?:$|[@;=<>!~(])")


class SideError(Exception):
    """A file that describes no environment; the text is one line that names it."""


@dataclass(frozen=True, slots=True)
class Side:
    """An environment.

    Attributes:
        name: what messages call it.
        packages: version, or specifier such as `>=2.0`, by normalised distribution name.
        whole: whether a package that is not listed is not there: so in a snapshot, not in a list of requirements.
        machine: the rest of a snapshot, empty where the description is only of packages.
    """

    name: str
    packages: Mapping[str, str]
    whole: bool
    machine: Mapping[str, Any] = field(default_factory=dict)

    def version(self, *names: str) -> str | None:
        """The version of the first of some distributions that is there."""
        return next((self.packages[name] for name in names if name in self.packages), None)

    @property
    def imports(self) -> Mapping[str, str]:
        """Distribution by imported name, where they differ and the snapshot knows."""
        known: Mapping[str, str] = self.machine.get("imports") or {}
        return known


def read_side(path: Path) -> Side:
    """The environment that a file describes.

    Raises:
        SideError: it cannot be read, or describes none.
    """
    try:
        if path.suffix == ".ipynb":
            return _of_notebook(path)
        text = path.read_text(encoding="utf-8", errors="replace")
    except (OSError, UnreadableError) as error:
        raise SideError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if path.suffix == ".lock" or path.name.startswith("pylock"):
        return Side(str(path), _locked(path, text), whole=True)
    if path.suffix == ".json" or text.lstrip().startswith("{"):
        return _of_snapshot(path, text)
    return _of_requirements(path, text)


def _of_snapshot(path: Path, text: str) -> Side:
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise SideError(f"{path}: not JSON: {error}") from error
    if isinstance(raw, dict) and "default" in raw:
        return Side(str(path), _pipfile_lock(raw), whole=True)
    if not isinstance(raw, dict) or "packages" not in raw:
        raise SideError(f"{path}: no snapshot; make one with `lightlint env snapshot -o {path.name}`")
    if raw.get("schema") != SCHEMA:
        raise SideError(f"{path}: a snapshot of schema {raw.get('schema')}, this lightlint reads {SCHEMA}")
    return Side(str(path), raw["packages"], whole=True, machine=raw)


def _pipfile_lock(raw: Mapping[str, Any]) -> dict[str, str]:
    return {normalise(name): str(entry.get("version", "")).removeprefix("==") for name, entry in raw["default"].items()}


def _locked(path: Path, text: str) -> dict[str, str]:
    """uv.lock, poetry.lock, pdm.lock and pylock.toml."""
    import tomllib

    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SideError(f"{path}: {error}") from error
    entries = raw.get("package") or raw.get("packages") or []
    return {normalise(entry["name"]): entry["version"] for entry in entries if "name" in entry and "version" in entry}


def _of_requirements(path: Path, text: str) -> Side:
    """requirements.txt, or what `pip freeze` prints: the latter pins every line exactly."""
    lines = [line.split(" #")[0].rstrip("\\ ").strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("-", "#", ".", "/", "http", "git+"))]
    if strange := next((line for line in lines if not _REQUIREMENT.match(line)), ""):
        raise SideError(f"{path}: no snapshot, no lock file, and `{strange[:40]}` is no requirement")
    required = [parse_requirement(line) for line in lines]
    known = [each for each in required if each is not None and each.name]
    if not known:
        raise SideError(f"{path}: no snapshot, no requirements and no lock file")
    frozen = len(known) > 1 and all(each.exact for each in known)
    return Side(str(path), _specified((each.name, each.specifier) for each in known), whole=frozen)


def _of_notebook(path: Path) -> Side:
    """What a notebook installs, on top of what its host brings: the rest is not known."""
    commands = [command for _, command in load(path).pip_lines]
    required = [each for command in commands for each in parse_pip_command(command) if each.name]
    if not required:
        raise SideError(f"{path}: installs nothing, so it describes no environment")
    return Side(str(path), _specified((each.name, each.specifier) for each in required), whole=False)


def _specified(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: specifier.removeprefix("==") for name, specifier in pairs}
