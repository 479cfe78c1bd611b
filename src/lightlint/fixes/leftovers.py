"""Imports that fixes left unused: removed, where nothing else can need them."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import libcst as cst

from lightlint.facts.file import FileFacts
from lightlint.facts.project.mentions import occurs
from lightlint.facts.project.project import Project, Projects
from lightlint.finding import Edit
from lightlint.fixes.code import Code
from lightlint.fixes.draft import RawEdit
from lightlint.fixes.drafts.imports import drop_import
from lightlint.sources.source import Source
from lightlint.trees.parsing import UnparsableError, deep_recursion, no_collection, parse

# Whose import does nothing but bind names, as far as a file that no longer uses them can tell.
_QUIET = frozenset(
    (
        "torch",
        "torchvision",
        "torchaudio",
        "torchtext",
        "torchmetrics",
        "lightning",
        "pytorch_lightning",
        "lightning_fabric",
    )
)
_MODULE = re.compile(r"^[ \t]*from[ \t]+[\w.]+(?=[ \t]+import\b)|(?<=import )[\w.]+(?=[ \t]+as\b)", re.MULTILINE)


def leftovers(before: Source, after: Source, projects: Projects) -> Sequence[Edit]:
    """The removal of one name that a file imports and that the fixes between two states of it took the last use from.

    Not where its text has the word anywhere else, be it in a string or a comment, in a magic of a notebook or in
    `__all__`; where another file may import it from here; from a package's `__init__.py`; or from a module whose import may do more.
    """
    path = Path(after.filename).absolute()
    if path.name == "__init__.py":
        return ()
    with no_collection(), deep_recursion():
        return _unused(before, after, path, projects)


def _unused(before: Source, after: Source, path: Path, projects: Projects) -> Sequence[Edit]:
    try:
        module = parse(after)
    except UnparsableError:
        return ()
    project = projects.of(path)
    for name in _imported(module):
        lost = _words(after, name) == 1 < _words(before, name)
        if lost and not _is_handed_on(project, path, name):
            facts = FileFacts(after, module, project)
            draft = drop_import(Code(after, facts), module, name)
            if draft.edits and _is_free(after, draft.edits):
                return tuple(after.edit(*_from_the_top(after, each)) for each in draft.edits)
    return ()


def _imported(module: cst.Module) -> list[str]:
    """The names that imports at the top of a file bind, from modules that are quiet."""
    names: list[str] = []
    for line in module.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if (
                isinstance(small, cst.ImportFrom)
                and not isinstance(small.names, cst.ImportStar)
                and _is_quiet(small.module)
            ):
                names += (each.evaluated_alias or each.evaluated_name for each in small.names)
            elif isinstance(small, cst.Import):
                names += (each.evaluated_alias or each.evaluated_name for each in small.names if _is_quiet(each.name))
    return names


def _is_quiet(module: cst.BaseExpression | None) -> bool:
    while isinstance(module, cst.Attribute):
        module = module.value
    return isinstance(module, cst.Name) and (module.value in _QUIET or module.value in sys.stdlib_module_names)


def _words(source: Source, name: str) -> int:
    """How often a name stands in a text by itself: strings, comments and magics count, attributes of others do not.

    Neither do the modules that other imports take something from.
    """
    return len(re.findall(rf"(?<![\w.]){re.escape(name)}\b", _MODULE.sub("", source.shown)))


def _is_handed_on(project: Project, path: Path, name: str) -> bool:
    """Whether another file gets a name from this one."""
    if not path.stem.isidentifier():
        return False
    stem = re.escape(path.stem)
    named = rf"\b{stem}\s+import\b[^#]*\b{name}\b|\b{stem}\.{name}\b"
    return occurs(project, name, named, path) or occurs(project, path.stem, rf"\b{stem}\s+import\s*\*", path)


def _from_the_top(source: Source, edit: RawEdit) -> RawEdit:
    """An edit with the blank lines below it, where nothing stands above it."""
    cell = source.cell_at(edit.start)
    start, end = (cell.start, cell.end) if cell else (0, len(source.text))
    blank = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))+").match(source.text, edit.end, end)
    return RawEdit(edit.start, blank.end(), "") if blank and edit.start == start else edit


def _is_free(source: Source, edits: Sequence[RawEdit]) -> bool:
    """Whether nobody asked for the line to stay: `# noqa` and the like."""
    rows = [
        source.text[: each.start].rpartition("\n")[2] + source.text[each.start :].partition("\n")[0] for each in edits
    ]
    return not any("#" in row for row in rows)
