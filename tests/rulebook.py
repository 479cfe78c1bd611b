"""Reads the examples of rule pages: what each block claims, and the project it stands for."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from lightlint.pages import Page

_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"[ \t]*# (todo )?(LL\d{3})(?: \((\w+)\))?: (.+)$")
_KINDS = {"bad", "fixed", "good"}


@dataclass(frozen=True)
class Mark:
    """`# LL101: message` behind a line of an example: a finding that must be there (`todo`: that is known to be missed)."""

    file: str
    row: int
    code: str
    message: str
    tier: str | None = None
    todo: bool = False


@dataclass
class Example:
    """The files of a `bad`, `fixed` or `good` example with the settings it is judged by."""

    kind: str
    line: int
    files: dict[str, str] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    fixed: Example | None = None

    def write(self, folder: Path) -> None:
        for name, text in self.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)


def examples(page: Page) -> list[Example]:
    """The examples of a page in order. A `fixed` block hangs on the `bad` one before it; blocks that name a file
    (`python bad file=models.py`) join the example before them if that is of their kind and lacks the file."""
    text = page.path.read_text()
    found: list[Example] = []
    settings: dict[str, object] = {}
    for match in _FENCE.finditer(text):
        language, info, body = match.groups()
        words = info.split()
        if language == "toml" and words == ["settings"]:
            settings = tomllib.loads(body)
            continue
        kind = next((word for word in words if word in _KINDS), None)
        if kind is None:
            continue
        name = next((word.removeprefix("file=") for word in words if word.startswith("file=")), "example.py")
        line = text.count("\n", 0, match.start()) + 1
        last = found[-1] if found else None
        if kind == "fixed":
            assert last is not None, f"{page.path}:{line}: a fixed block follows its bad block"
            assert last.kind == "bad", f"{page.path}:{line}: a fixed block follows its bad block"
            last.fixed = last.fixed or Example("fixed", line, settings=last.settings)
            last.fixed.files[name] = body
            continue
        if last is None or last.kind != kind or name in last.files or "example.py" in (name, *last.files) or settings:
            found.append(Example(kind, line, settings=settings))
            settings = {}
        _add(found[-1], name, body)
    return found


def _add(example: Example, name: str, body: str) -> None:
    rows = []
    for row, line in enumerate(body.splitlines(), 1):
        match = _MARK.search(line)
        if match:
            todo, code, tier, message = match.groups()
            example.marks.append(Mark(name, row, code, message, tier, bool(todo)))
            line = line[: match.start()]
        rows.append(line)
    example.files[name] = "\n".join(rows) + "\n"
