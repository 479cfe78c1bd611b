"""The keys settings have, in files and on the command line, and what a value of each must be."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from lightlint.config.globs import absolute, compiled
from lightlint.config.select import UnknownRuleError, match, suggestion

FOR_PEOPLE = ("full", "concise", "grouped")
OUTPUT_FORMATS = (*FOR_PEOPLE, "json", "json-lines", "sarif", "github", "gitlab", "junit", "pylint")

_ONE_VERSION = (
    r"\s*(?:[<>=!~^]=?)?\s*\d+(?:\.(?:\d+|\*))*(?:[._+-]?[a-z0-9]+)*\s*"  # a version, or one clause of a specifier
)
_VERSION = re.compile(rf"{_ONE_VERSION}(?:,{_ONE_VERSION})*", re.IGNORECASE)


class SettingsError(Exception):
    """Settings that cannot be used; the text is one line that names file, key and, where one is near, the right spelling."""


class _WrongValueError(ValueError):
    """What is wrong with a value, and with which key of a table where it is one."""

    def __init__(self, message: str, inner: str = "") -> None:
        super().__init__(message)
        self.inner = inner


def in_file(path: Path) -> Callable[[str], str]:
    """How messages name a settings file's keys."""
    return f"{shown(path)}: {{}}".format


def on_command_line(key: str) -> str:
    """How messages name the option that stands for a key: `target.torch` is `--target-torch`."""
    return f"--{key.replace('.', '-')}"


def checked(raw: Mapping[str, object], directory: str, place: Callable[[str], str]) -> dict[str, object]:
    """The parsed values by key.

    Args:
        raw: the values as TOML or the command line gives them.
        directory: where relative globs and paths start.
        place: makes a key into the name that messages give it.

    Raises:
        SettingsError: a key, rule or value is not known.
    """
    values = {}
    for key, value in raw.items():
        parse = _PARSERS.get(key)
        if parse is None:
            raise SettingsError(f"{place(key)}: unknown key{suggestion(key, list(_PARSERS))}")
        try:
            values[key] = parse(value, directory)
        except UnknownRuleError as error:
            raise SettingsError(f"{place(key)}: {error}") from error
        except _WrongValueError as error:
            raise SettingsError(f"{place(f'{key}.{error.inner}' if error.inner else key)}: {error}") from error
    return values


def _parse_selectors(value: object, directory: str) -> tuple[str, ...]:
    selectors = _parse_strings(value, directory)
    for selector in selectors:
        match(selector)
    return selectors


def _parse_strings(value: object, _directory: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise _WrongValueError(f"expected a list of strings, found {kind_of(value)}")
    wrong = next((item for item in value if not isinstance(item, str)), None)
    if wrong is not None:
        raise _WrongValueError(f"expected a list of strings, found {kind_of(wrong)} in it")
    return tuple(value)


def _parse_globs(value: object, directory: str) -> tuple[str, ...]:
    return tuple(_parse_glob(glob, directory) for glob in _parse_strings(value, directory))


def _parse_glob(glob: str, directory: str) -> str:
    try:
        compiled(glob)
    except ValueError as error:
        raise _WrongValueError(str(error)) from error
    return absolute(glob, directory)


def _parse_ignores(value: object, directory: str) -> dict[str, frozenset[str]]:
    if not isinstance(value, dict):
        raise _WrongValueError(f"expected a table of globs to lists of rules, found {kind_of(value)}")
    return {
        _parse_glob(glob, directory): frozenset[str]().union(*(match(s)[1] for s in _parse_strings(rules, directory)))
        for glob, rules in value.items()
    }


def _parse_bool(value: object, _directory: str) -> bool:
    if not isinstance(value, bool):
        raise _WrongValueError(f"expected true or false, found {kind_of(value)}")
    return value


def _parse_distributed(value: object, _directory: str) -> bool | None:
    if value == "auto":
        return None
    if not isinstance(value, bool):
        raise _WrongValueError(f'expected true, false or "auto", found {kind_of(value)}')
    return value


def _parse_format(value: object, _directory: str) -> str:
    if not isinstance(value, str):
        raise _WrongValueError(f"expected one of {', '.join(OUTPUT_FORMATS)}, found {kind_of(value)}")
    if value not in OUTPUT_FORMATS:
        near = suggestion(value, OUTPUT_FORMATS) or f"; there are {', '.join(OUTPUT_FORMATS)}"
        raise _WrongValueError(f"unknown format `{value}`{near}")
    return value


TARGETS = ("torch", "lightning", "transformers", "trl", "peft", "accelerate")


def _parse_target(value: object, _directory: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _WrongValueError(f"expected a table of torch and lightning versions, found {kind_of(value)}")
    for package, version in value.items():
        if package not in TARGETS:
            raise _WrongValueError(f"unknown key{suggestion(package, TARGETS)}", package)
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            found = f'"{version}"' if isinstance(version, str) else kind_of(version)
            raise _WrongValueError(
                f'expected a version in quotes such as "2.4" or ">=1.9,<2.3", found {found}', package
            )
    return dict(value)


def _parse_path(value: object, directory: str) -> Path:
    if not isinstance(value, str):
        raise _WrongValueError(f"expected a path, found {kind_of(value)}")
    try:
        return Path(os.path.normpath(directory / Path(value).expanduser()))
    except RuntimeError as error:  # `~nobody`
        raise _WrongValueError(str(error)) from error


_PARSERS: Mapping[str, Callable[[object, str], object]] = {
    "select": _parse_selectors,
    "extend-select": _parse_selectors,
    "ignore": _parse_selectors,
    "extend-ignore": _parse_selectors,
    "per-file-ignores": _parse_ignores,
    "extend-per-file-ignores": _parse_ignores,
    "exclude": _parse_globs,
    "extend-exclude": _parse_globs,
    "force-exclude": _parse_bool,
    "respect-gitignore": _parse_bool,
    "fix": _parse_bool,
    "unsafe-fixes": _parse_bool,
    "output-format": _parse_format,
    "notes": _parse_bool,
    "target": _parse_target,
    "distributed": _parse_distributed,
    "extend": _parse_path,
}


def kind_of(value: object) -> str:
    """What a value is, in TOML's words."""
    names: Iterable[tuple[type, str]] = (
        (bool, "true or false"),
        (int, "a number"),
        (float, "a number"),
        (str, "a string"),
        (list, "a list"),
        (dict, "a table"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), type(value).__name__)


def shown(path: Path) -> str:
    """A path as messages show it: relative where it lies below the working directory."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
