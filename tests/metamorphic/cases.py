"""The programs that are rewritten: examples of rule pages, or labelled cases in a folder."""

from __future__ import annotations

import ast
import hashlib
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rulebook import Example, examples

from lightlint.pages import Page, all_pages

# Cells, suppressions, and what a writer says to mean are in comments, which no rewritten program has.
COMMENT = re.compile(r"^# %%|# *(?:noqa|lightlint:|type:|pragma|Monte-Carlo|/// script)", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A program with the rules it is judged by.

    `rows`: the lines of `target` with the faults that a finding is to name (none: the program is right, or the findings
    that it has are taken). `rules`: the codes to look for; none: all of tier error and warning.
    """

    name: str
    where: str
    files: dict[str, str]
    target: str
    rows: tuple[int, ...]
    good: bool
    rules: tuple[str, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr((sorted(self.files.items()), self.settings)).encode()).hexdigest()[:6]


def page_cases(page: Page) -> list[Case]:
    """The first bad example of a page that is no notebook, and all its good ones."""
    found: list[Case] = []
    for example in examples(page):
        if any(name.endswith(".ipynb") or COMMENT.search(text) for name, text in example.files.items()):
            continue
        bad = example.kind == "bad"
        if bad and any(not case.good for case in found):
            continue
        target = _target(example)
        rows = tuple(sorted({m.row for m in example.marks if not m.todo and m.file == target and m.code == page.code}))
        if bad and not rows:
            continue
        where = f"{page.path.parent.name}/{page.path.name}:{example.line}"
        case = Case(page.name, where, example.files, target, rows, not bad, (page.code,), example.settings)
        if _parses(case):
            found.append(case)
    return found


def _target(example: Example) -> str:
    """The file with most of the findings; of a good example the longest."""
    return max(example.files, key=lambda name: (sum(m.file == name for m in example.marks), len(example.files[name])))


def all_page_cases() -> list[Case]:
    return [case for page in all_pages().values() if page.family != "lightlint" for case in page_cases(page)]


def folder_cases(folder: Path) -> Iterator[Case]:
    """Labelled cases (`label.toml` beside bad and good programs) and folders of clean programs."""
    for label in sorted(folder.glob("*/label.toml")):
        said = tomllib.loads(label.read_text())
        for kind in ("bad", "good"):
            files = _files(label.parent, kind)
            target = said["file"].replace("bad.py", f"{kind}.py")
            target = target.removeprefix(f"{kind}/") if target not in files else target
            if target not in files:
                continue
            rows = (said["line"], *said.get("also_ok_lines", ()))
            case = Case(f"{label.parent.name}", f"{label.parent}/{kind}", files, target, rows, kind == "good")
            if _parses(case):
                yield case
    for path in sorted(folder.glob("clean*/*.py")):
        case = Case(path.stem, str(path), {path.name: path.read_text()}, path.name, (), good=True)
        if _parses(case):
            yield case


def _files(folder: Path, kind: str) -> dict[str, str]:
    if (folder / kind).is_dir():
        return {str(p.relative_to(folder / kind)): p.read_text() for p in sorted((folder / kind).rglob("*.py"))}
    single = folder / f"{kind}.py"
    return {single.name: single.read_text()} if single.is_file() else {}


def _parses(case: Case) -> bool:
    try:
        ast.parse(case.files[case.target])
    except SyntaxError:
        return False
    return True
