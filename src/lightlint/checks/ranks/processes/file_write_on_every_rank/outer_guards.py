"""Rank tests in other files around the calls of a function: of a base class that calls what a subclass overrides, of a driver."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.project.across import OUTSIDE
from lightlint.facts.project.callers import runs
from lightlint.facts.project.glimpse import INDEXED
from lightlint.facts.project.mentions import occurs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lightlint.facts.file import FileFacts

_Use = cst.Call | cst.Attribute
_DEPTH = 3
_RANK_TEST = r"\bif\b[^\n]*(?:rank|master|is_main|main_process|primary)[^\n]*:[^\n]*(?:\n[^\n]*){0,8}?"


def guarded_by_others(facts: FileFacts, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether every call in sight that leads to a node may stand on a subset of the ranks, calls in other files included.

    Whole trees are read: ask when a finding hangs on it.
    """
    function = facts.tree.function(node)
    if function is None or depth > _DEPTH:
        return False
    outcomes = {False} if _has_namesakes(facts, function) else set[bool]()
    for room, call, sure in _calls(facts, function):
        guarded = room.guards.guarded(call) or guarded_by_others(room, call, depth + 1)
        if sure and not guarded:
            return False
        outcomes.add(guarded)
    return True in outcomes if outcomes else _may_be_guarded(facts, function, known=depth > 0)


def _may_be_guarded(facts: FileFacts, function: cst.FunctionDef, *, known: bool) -> bool:
    """Whether a test of the rank stands shortly before a call, in another file, of a method of the same name; where no
    caller is `known`, whether there is such a call."""
    if facts.tree.class_of(function) is None:
        return False
    name, aside = function.name.value, Path(facts.source.filename).absolute()
    pattern = rf"\.{re.escape(name)}\s*\("
    named = rf"['\"]{re.escape(name)}['\"]"
    return occurs(facts.project, name, _RANK_TEST + pattern if known else f"{pattern}|{named}", aside)


def _uses(room: FileFacts, word: str) -> list[_Use]:
    """The calls of what has a name, and the reads of attributes of this name, which may be called later."""
    calls = [each for each in room.tree.all(cst.Call) if room.names.method(each) == word]
    called = {id(each.func) for each in calls}
    reads = [each for each in room.tree.all(cst.Attribute) if each.attr.value == word and id(each) not in called]
    return [*calls, *reads]


def _like(facts: FileFacts, function: cst.FunctionDef) -> list[_Use]:
    """The calls of this file that may run a method, of receivers out of sight."""
    if facts.tree.class_of(function) is None:
        return []
    return [each for each in _uses(facts, function.name.value) if _is_of_anything(facts, each)]


def _calls(facts: FileFacts, function: cst.FunctionDef) -> Iterator[tuple[FileFacts, _Use, bool]]:
    """The calls that run a function, those of this file first, and, not surely, those that may do so."""
    own = {*facts.hooks.calls_of.get(function, ()), *facts.instances.calls_of.get(function, ())}
    yield from ((facts, each, True) for each in own)
    yield from _called(facts, function)
    yield from ((facts, each, False) for each in _like(facts, function) if each not in own)


def _called(facts: FileFacts, function: cst.FunctionDef) -> Iterator[tuple[FileFacts, _Use, bool]]:
    """The calls of other files that run a function, or, where the receiver is out of sight, may do so."""
    node, word = facts.tree.class_of(function), function.name.value
    for room in _rooms(facts, node, word):
        for use in _uses(room, word):
            called_here = isinstance(use, cst.Call) and runs(facts, function, room, use)
            if called_here or _is_of_line(facts, node, room, use):
                yield room, use, True
            elif node is not None and _is_of_anything(room, use):
                yield room, use, False


def _rooms(facts: FileFacts, node: cst.ClassDef | None, word: str) -> Iterator[FileFacts]:
    """The other files that may use something: those of the bases of its class, then those that import from this one."""
    bases = [*dict.fromkeys(_bases(facts, node))] if node is not None else []
    yield from bases
    heirs = {each.path for each in facts.classes.heirs_elsewhere(node)} if node is not None else set()
    used = re.compile(rf"(?<!def )\b{word}\b")
    by_others = re.compile(rf"(?<!def )(?<!\bself\.)(?<!\bsuper\(\)\.)\b{word}\b")
    for path in facts.project.users(facts.path, *INDEXED):
        uses = used if path in heirs else by_others
        other = facts.other(path) if uses.search(facts.project.text(path)) else None
        if other is not None and other not in bases:
            yield other


def _has_namesakes(facts: FileFacts, function: cst.FunctionDef) -> bool:
    """Whether methods in the files that import from this one run others of the same name, those that they override."""
    node, word = facts.tree.class_of(function), function.name.value
    above = re.compile(rf"\bsuper\(\)\.{word}\b")
    users = facts.project.users(facts.path, *INDEXED) if node is not None else ()
    return any(above.search(facts.project.text(path)) for path in users)


def _is_of_anything(room: FileFacts, use: _Use) -> bool:
    """Whether a use is of a method, of an object out of sight."""
    func = use.func if isinstance(use, cst.Call) else use
    if not isinstance(func, cst.Attribute) or room.names.of(func) or room.classes.is_self(func.value):
        return False
    return room.values.constructor(func.value) is None


def _bases(facts: FileFacts, node: cst.ClassDef) -> Iterator[FileFacts]:
    """The files in which the bases of a class stand."""
    for name in facts.classes.ancestors(node):
        found = facts.of_class(name) if name and not name.startswith(OUTSIDE) else None
        if found is not None and found[0] is not facts:
            yield found[0]


def _is_of_line(facts: FileFacts, node: cst.ClassDef | None, room: FileFacts, use: _Use) -> bool:
    """Whether a use is one through `self` in a class above or below the one whose method it may run."""
    around, func = room.tree.enclosing_class(use), use.func if isinstance(use, cst.Call) else use
    if node is None or around is None or not isinstance(func, cst.Attribute):
        return False
    one, other = facts.names.defined(node), room.names.defined(around)
    related = facts.classes.name_is_a(one, other) or room.classes.name_is_a(other, one)
    related = related or any(_is_class(room, name, facts, node) for name in room.classes.ancestors(around))
    return related and room.classes.is_self(func.value)


def _is_class(room: FileFacts, name: str, facts: FileFacts, node: cst.ClassDef) -> bool:
    """Whether a name in one file is a class of another, wherever its packages start."""
    found = room.of_class(name) if name and not name.startswith(OUTSIDE) else None
    return found is not None and found[0].path == facts.path and found[1].name.value == node.name.value
