"""Frozen settings from the nearest `[tool.lightlint]`, with ruff's names, and from the command line laid over it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lightlint.config.globs import matches
from lightlint.config.options import SettingsError, checked, in_file, kind_of, on_command_line, shown
from lightlint.config.select import Layer, Selection, resolve
from lightlint.finding import Finding, Tier
from lightlint.memo.looked import looked

DEFAULT_EXCLUDE = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".git-rewrite",
    ".hg",
    ".ipynb_checkpoints",
    ".lightlint_cache",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pyenv",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "._*",  # what macOS stores beside files on other systems: no Python, whatever the ending
    "__MACOSX",
    "__pycache__",
    "__pypackages__",
    "_build",
    "buck-out",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)

_FILES = (".lightlint.toml", "lightlint.toml", "pyproject.toml")  # the first that is there wins, as in ruff


@dataclass(frozen=True)
class Target:
    """Versions the code is written for, as the settings state them; None where they do not."""

    torch: str | None = None
    lightning: str | None = None
    transformers: str | None = None
    trl: str | None = None
    peft: str | None = None
    accelerate: str | None = None


@dataclass(frozen=True)
class Ignores:
    """Rules that are off in the files a glob matches (with `!` before it: in all others)."""

    pattern: str
    rules: frozenset[str]

    def cover(self, path: str) -> bool:
        """Whether the rules are off in the file at an absolute path."""
        negated = self.pattern.startswith("!")
        return matches(self.pattern.removeprefix("!"), path) is not negated


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """The checked values of one settings file or of the command line, by key."""

    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """All that decides what a run looks at and says. Globs with a slash are absolute.

    `distributed` is None for "auto": the project is looked at. `file` is the settings file, None where there is none.
    `nested` is whether files further down may have settings of their own.
    """

    selection: Selection
    file: Path | None = None
    per_file_ignores: tuple[Ignores, ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    force_exclude: bool = False
    respect_gitignore: bool = True
    fix: bool = False
    unsafe_fixes: bool = False
    output_format: str = "full"
    notes: bool = False
    target: Target = Target()
    distributed: bool | None = None
    nested: bool = False
    overrides: Table = field(default_factory=Table, repr=False)

    def for_path(self, path: str | os.PathLike[str]) -> Settings:
        """The settings of the file at `path`: those of the nearest settings file above it, else these.

        Raises:
            SettingsError: that settings file cannot be used.
        """
        if not self.nested:
            return self
        found = _file_above(_full(path).parent)
        return self if found is None or found == self.file else _of_file(found, self.overrides)

    def rules_for(self, path: str | os.PathLike[str]) -> frozenset[str]:
        """Names of the rules that run on the file at `path`; call it on the settings `for_path` gave."""
        if not self.per_file_ignores:
            return self.selection.active
        full = str(_full(path))
        off = (ignores.rules for ignores in self.per_file_ignores if ignores.cover(full))
        return self.selection.active.difference(*off)

    def shows(self, finding: Finding) -> bool:
        """Whether a finding is listed: notes only where asked for, by `notes` or by the rule's own code or name."""
        return finding.tier is not Tier.NOTE or self.notes or finding.name in self.selection.named


def load(
    command_line: Mapping[str, object] | None = None, *, file: Path | None = None, isolated: bool = False
) -> Settings:
    """The settings for the working directory.

    Args:
        command_line: values by key, as a settings file would have them, laid over every file's.
        file: a settings file that holds for all paths, instead of those nearest to them.
        isolated: read no settings file.

    Raises:
        SettingsError: a key, rule or value is not known, or a file cannot be read.
    """
    overrides = Table(checked(command_line or {}, str(Path.cwd()), on_command_line))
    if file is not None:
        return _build([*_tables(_full(file)), overrides], _full(file), overrides, nested=False)
    found = None if isolated else _file_above(Path.cwd())
    if found is not None:
        return _of_file(found, overrides)
    return _build([overrides], None, overrides, nested=not isolated)


def forget() -> None:
    """Drop what was read from settings files, for a long-lived door that sees them change."""
    for cached in (_file_above, _of_file):
        cached.cache_clear()


def _full(path: str | os.PathLike[str]) -> Path:
    """The absolute path without `..`, symlinks left as they are."""
    return Path(os.path.normpath(Path.cwd() / path))


@cache
def _file_above(directory: Path) -> Path | None:
    """The settings file in a directory or the nearest one above it."""
    for name in _FILES:
        path = directory / name
        if _is_file(path) and (name != "pyproject.toml" or _has_table(path)):
            return path
    return None if directory.parent == directory else _file_above(directory.parent)


def _is_file(path: Path) -> bool:
    looked(path)
    try:
        return path.is_file()
    except OSError:  # a directory that may not be searched, a name too long
        return False


def _has_table(pyproject: Path) -> bool:
    return b"lightlint" in _read(pyproject) and "lightlint" in _tool(pyproject)


@cache
def _of_file(path: Path, overrides: Table) -> Settings:
    return _build([*_tables(path), overrides], path, overrides, nested=True)


def _read(path: Path) -> bytes:
    looked(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{shown(path)}: cannot be read: {error.strerror}") from error


def _tool(path: Path) -> Mapping[str, object]:
    """The `[tool]` table of a pyproject.toml; any other file is taken as the one table `lightlint` of it."""
    import tomllib

    try:
        raw = tomllib.loads(_read(path).decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{shown(path)}: not valid TOML: {error}") from error
    if path.name != "pyproject.toml":
        return {"lightlint": raw}
    tool = raw.get("tool", {})
    return tool if isinstance(tool, dict) else {}


def _tables(path: Path, above: tuple[Path, ...] = ()) -> list[Table]:
    """The tables of a settings file and of those it extends, the base first."""
    raw = _tool(path).get("lightlint", {})
    if not isinstance(raw, dict):
        raise SettingsError(f"{shown(path)}: tool.lightlint: expected a table, found {kind_of(raw)}")
    values = checked(raw, str(path.parent), in_file(path))
    base = values.get("extend")
    if not isinstance(base, Path):
        return [Table(values)]
    if base in (path, *above):
        raise SettingsError(f"{shown(path)}: extend: {shown(base)} is extended in a circle")
    return [*_tables(base, (path, *above)), Table(values)]


def _build(tables: Sequence[Table], file: Path | None, overrides: Table, *, nested: bool) -> Settings:
    """Lay tables over each other, the last one on top."""
    last = {key: value for table in tables for key, value in table.values.items()}
    target = {key: value for table in tables for key, value in _mapping(table, "target").items()}
    ignores = {**_mapping(Table(last), "per-file-ignores")}
    for table in tables:
        for pattern, rules in _mapping(table, "extend-per-file-ignores").items():
            ignores[pattern] = ignores.get(pattern, frozenset()) | rules
    plain = ("force-exclude", "respect-gitignore", "fix", "unsafe-fixes", "output-format", "notes", "distributed")
    return Settings(
        selection=resolve(_layer(table) for table in tables),
        file=file,
        per_file_ignores=tuple(Ignores(pattern, rules) for pattern, rules in ignores.items()),
        exclude=(
            *_strings(last.get("exclude", DEFAULT_EXCLUDE)),
            *(glob for table in tables for glob in _strings(table.values.get("extend-exclude", ()))),
        ),
        target=Target(**target),
        nested=nested,
        overrides=overrides,
        **{key.replace("-", "_"): last[key] for key in plain if key in last},  # type: ignore[arg-type]
    )


def _layer(table: Table) -> Layer:
    def selectors(key: str) -> tuple[str, ...]:
        return _strings(table.values.get(key, ()))

    select = selectors("select") if "select" in table.values else None
    return Layer(select, selectors("extend-select"), (*selectors("ignore"), *selectors("extend-ignore")))


def _mapping(table: Table, key: str) -> Mapping[str, Any]:
    value = table.values.get(key, {})
    assert isinstance(value, dict)
    return value


def _strings(value: object) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return value
