"""Names that came, went or changed with a version of a package or of Python, held against code.

They are data: `package-api.toml`, kept by hand, and `removed-names.toml`, read from wheels.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lightlint.environment.code.usage import Usage
from lightlint.environment.code.uses import Use
from lightlint.environment.describing.side import Side
from lightlint.facts.versions.versions import Version


@dataclass(frozen=True, slots=True)
class Change:
    """What a version did to a name.

    Attributes:
        kind: `added`, `removed` or `changed`.
        keywords: where a call has one of them, the change does not concern it.
        why: what a changed name does.
    """

    package: str
    name: str
    kind: str
    version: Version
    keywords: frozenset[str] = frozenset()
    why: str = ""

    def lacks(self, version: Version) -> bool:
        """Whether a version does not have the name."""
        return (version < self.version) if self.kind == "added" else self.kind == "removed" and version >= self.version


@dataclass(frozen=True, slots=True)
class Concern:
    """A change that concerns the code, and where it first does."""

    change: Change
    use: Use
    place: str


def lacking(usage: Usage, side: Side) -> Iterator[Concern]:
    """What the code uses and an environment does not have, each name once."""
    for concern in _concerns(usage):
        version = version_of(concern.change.package, side)
        if version is not None and concern.change.lacks(version) and not _brought(concern, side):
            yield concern


def changed(usage: Usage, first: Side, second: Side) -> Iterator[Concern]:
    """What the code uses and does something else in one of two environments."""
    for concern in _concerns(usage):
        change, versions = concern.change, [version_of(concern.change.package, side) for side in (first, second)]
        concerns = concern.use.keywords is not None and not change.keywords & concern.use.keywords
        if change.kind == "changed" and concerns and None not in versions:
            one, other = (version >= change.version for version in versions if version is not None)
            if one != other:
                yield concern


def version_of(package: str, side: Side) -> Version | None:
    """The exact version of a package, or of Python; None where it is a range, or there is none."""
    try:
        return Version(told(package, side))
    except ValueError:
        return None


def told(package: str, side: Side) -> str:
    """The version of a package, or of Python, as the environment's description has it."""
    return str(side.machine.get("python", "")) if package == "python" else side.version(package) or ""


def versions(change: Change, first: Side, second: Side) -> tuple[str, str]:
    """The versions that two environments have."""
    return told(change.package, first), told(change.package, second)


def missing(change: Change) -> str:
    """What is known of a name that is not there: since when it is, or is no more."""
    what = "came with" if change.kind == "added" else "went with"
    return f"`{change.name}` {what} {'Python' if change.package == 'python' else change.package} {change.version}"


def _brought(concern: Concern, side: Side) -> bool:
    """Whether setuptools brings it all the same: it has a copy of `distutils`."""
    return concern.change.name == "distutils" and side.version("setuptools") is not None


def _concerns(usage: Usage) -> Iterator[Concern]:
    told = set()
    for use, place in usage.uses:
        change = _change(use.name)
        if change is not None and change.name not in told:
            if change.kind != "changed" or use.keywords is not None:
                told.add(change.name)
            yield Concern(change, use, str(place))


def _change(name: str) -> Change | None:
    """The change of a name, or of the nearest one that it lies in."""
    known = _changes()
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return known.get(name)


@cache
def _changes() -> Mapping[str, Change]:
    found = {}
    for name in ("removed-names.toml", "package-api.toml"):
        raw = tomllib.loads(files("lightlint").joinpath("data", name).read_text(encoding="utf-8"))
        for package, kinds in raw.items():
            if isinstance(kinds, dict):
                found.update({change.name: change for change in _changes_of(package, kinds)})
    return found


def _changes_of(package: str, kinds: Mapping[str, Mapping[str, Any]]) -> Iterator[Change]:
    for kind in ("added", "removed"):
        for version, names in kinds.get(kind, {}).items():
            yield from (Change(package, name, kind, Version(version)) for name in names)
    for name, entry in kinds.get("changed", {}).items():
        yield Change(package, name, "changed", Version(entry["in"]), frozenset(entry["keywords"]), entry["why"])
