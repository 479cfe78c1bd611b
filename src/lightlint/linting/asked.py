"""Which events each rule asks for, read off its code: a rule is asked wherever they happen, whatever its `needs` say."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import lightlint
from lightlint.linting.gate import checked_pages
from lightlint.memo.kept import derived
from lightlint.pages import Page

_EVENTS = "lightlint.engine.events"
_ASKING = ("lightlint.checks.", "lightlint.explore.questions.")
_NO_KINDS = {"E", "Event", "Where"}  # names of that package that are no kinds of events
OF_ANY_PROGRAM = {"Called", "CalledUnknown", "AttributeSet", "AttributeRead", "TensorMoved"}
"""Events that happen in any program: a check that asks for one of them is not asked wherever it happens."""


def asking_for(kinds: Iterable[str], active: Set[str]) -> list[Page]:
    """The pages, of those whose names are active, whose rules ask for one of some kinds of events."""
    index = _index()
    names = active & set().union(*(index.get(kind, ()) for kind in kinds))
    return [page for page in checked_pages() if page.name in names] if names else []


@cache
def _index() -> dict[str, list[str]]:
    """The names of the rules by the kinds of events that they ask for, but for what happens in any program."""
    root = Path(lightlint.__file__).parent
    code = (*root.glob("checks/**/*.py"), *root.glob("explore/questions/*.py"), Path(__file__))
    found: dict[str, list[str]] = derived("asked", code, _indexed)
    return found


def _indexed() -> dict[str, list[str]]:
    index: dict[str, list[str]] = defaultdict(list)
    for page in checked_pages():
        for kind in sorted(events_of(page.check_module) - OF_ANY_PROGRAM):
            index[kind].append(page.name)
    return dict(index)


@dataclass(frozen=True)
class _Module:
    """What a module defines, each with the names in it, and where it has others from."""

    defined: dict[str, set[str]]
    imported: dict[str, tuple[str, str]]


def events_of(check: str) -> set[str]:
    """The kinds of events that a check, by its module, names, or that one of the questions does that it asks."""
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    left = [(check, name) for name in _module(check).defined]
    while left:
        module, name = left.pop()
        if (module, name) in seen:
            continue
        seen.add((module, name))
        if module.startswith(_EVENTS) and name not in _NO_KINDS:
            found.add(name)
        elif module.startswith(_ASKING):
            held = _module(module)
            left += [held.imported.get(each, (module, each)) for each in held.defined.get(name, ())]
    return found


@cache
def _module(name: str) -> _Module:
    path = Path(lightlint.__file__).parent.joinpath(*name.split(".")[1:])
    package = path / "__init__.py"  # a folder without it may be what a former one has left
    tree = ast.parse((package if package.exists() else path.with_suffix(".py")).read_bytes())
    defined: dict[str, set[str]] = {}
    for node in tree.body:
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        for bound in _bound_by(node):
            defined[bound] = names
    imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom) and each.module]
    imported = {one.asname or one.name: (each.module or "", one.name) for each in imports for one in each.names}
    return _Module(defined, imported)


def _bound_by(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [each.id for each in targets if isinstance(each, ast.Name)]
