"""Settings that a program reads from a file beside it: what is written there, unless a run is given another file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path

from lightlint.engine.arguments import Arguments
from lightlint.engine.machine import Machine
from lightlint.models.registry import function
from lightlint.values import core
from lightlint.values.core import Constant, Sequence, Unknown, Value, text_of, written
from lightlint.values.training import Instance


def value_of(content: object, key: tuple[Hashable, ...]) -> Value:
    """What a file says as a value: its dicts and lists are known, its numbers and texts are the defaults of options."""
    if isinstance(content, Mapping):
        found = core.Mapping({name: value_of(each, (*key, name)) for name, each in content.items()})
        found.more = not content
        return found
    if isinstance(content, list):
        return Sequence([value_of(each, (*key, place)) for place, each in enumerate(content)])
    hint = str(key[-1]) if key else ""
    if content is None or isinstance(content, (str, int, float, bool)):
        return Unknown(("setting", *key), hint=hint, plain=content is not None, default=Constant(content))
    return Unknown(("setting", *key), hint=hint)


def settings_at(machine: Machine, path: Value | None) -> Value | None:
    """What the file at a path says, None where it is not in sight."""
    found = read(path, lambda name: machine.sources.settings(name, machine.file))
    if found is None:
        return None
    machine.reads_settings = True
    machine.files.add(found[0])
    return found[1]


def read(path: Value | None, find: Callable[[str], tuple[Path | str, object] | None]) -> tuple[str, Value] | None:
    """The file at a path and what it says, None where it is not in sight; `find` gives both by a name."""
    name = name_of(path)
    found = find(name) if name is not None else None
    return None if found is None else (str(found[0]), value_of(found[1], (str(found[0]),)))


def name_of(path: Value | None) -> str | None:
    """A path as it is written down, also as the default of an option; of one in parts the parts at its end."""
    if isinstance(path, Instance) and path.kind == "path":
        parts: list[str] = []
        for part in reversed([*_parts(path.key)]):
            if not (isinstance(part, tuple) and part[:2] == ("constant", "str")):
                break
            parts.insert(0, str(part[2]))
        return "/".join(parts) or None
    return text_of(written(path))


def _parts(key: Hashable) -> list[Hashable]:
    if isinstance(key, tuple) and key[:1] == ("path",):
        return [each for part in key[1:] for each in _parts(part)]
    return [key]


@function("json.load", "json.loads", "yaml.safe_load", "yaml.load", "yaml.full_load")
def _load(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    first = given.get(0, "stream") or given.get(0, "fp") or given.get(0, "s")
    source = first.given_by if isinstance(first, Unknown) else first
    path = (
        source.arguments.get("file") if isinstance(source, Instance) and source.kind in ("handle", "file") else source
    )
    found = settings_at(machine, path)
    return found if found is not None else Unknown(("configuration", getattr(node, "lineno", 0)), hint="cfg")
