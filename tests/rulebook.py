"""Reads the examples of rule pages: what each block claims, and the project it stands for."""

from __future__ import annotations

import json
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
    """`# LL101: message` behind a line of an example: a finding that must be there (`todo`: that is known to be missed).

    In a notebook `row` counts in its `cell`.
    """

    file: str
    row: int
    code: str
    message: str
    tier: str | None = None
    todo: bool = False
    cell: int | None = None


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
        name = next((word.removeprefix("file=") for word in words if word.startswith("file=")), "")
        name = name or ("example.ipynb" if "notebook" in words else "example.py")
        line = text.count("\n", 0, match.start()) + 1
        last = found[-1] if found else None
        if kind == "fixed":
            assert last is not None, f"{page.path}:{line}: a fixed block follows its bad block"
            assert last.kind == "bad", f"{page.path}:{line}: a fixed block follows its bad block"
            last.fixed = last.fixed or Example("fixed", line, settings=last.settings)
            last.fixed.files[name] = body
            continue
        if last is None or last.kind != kind or name in last.files or _stands_alone(name, *last.files) or settings:
            found.append(Example(kind, line, settings=settings))
            settings = {}
        _add(found[-1], name, body)
    return found


def _stands_alone(*names: str) -> bool:
    return any(name.startswith("example.") for name in names)


def _add(example: Example, name: str, body: str) -> None:
    """Take the marks out of a block; one for a notebook (`python bad notebook`) has its cells behind `# %%` lines."""
    cells: list[list[str]] = [[]]
    for line in body.splitlines():
        if name.endswith(".ipynb") and line == "# %%":
            cells.append([])
            continue
        match = _MARK.search(line)
        cells[-1].append(line[: match.start()] if match else line)
        if match:
            todo, code, tier, message = match.groups()
            cell = len(cells) if name.endswith(".ipynb") else None
            example.marks.append(Mark(name, len(cells[-1]), code, message, tier, bool(todo), cell))
    texts = ["\n".join(rows) + "\n" for rows in cells]
    example.files[name] = notebook(*texts) if name.endswith(".ipynb") else texts[0]


def notebook(*cells: str) -> str:
    """A notebook of code cells as Jupyter writes it."""
    code = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text.splitlines(True)}
        for text in cells
    ]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"
