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

_DEPTH = 3
_RANK_TEST = r"\bif\b[^\n]*(?:rank|master|is_main|main_process|primary)[^\n]*:[^\n]*(?:\n[^\n]*){0,8}?"


def guarded_by_others(facts: FileFacts, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether every call in sight that leads to a node may stand on a subset of the ranks, calls in other files included.

    Whole trees are read: ask when a finding hangs on it.
    """
    function = facts.tree.function(node)
    if function is None or depth > _DEPTH:
        return False
    own = {*facts.hooks.calls_of.get(function, ()), *facts.instances.calls_of.get(function, ())}
    calls = [(facts, each, True) for each in own] + [*_called(facts, function)]
    calls += [(facts, each, False) for each in _like(facts, function) if each not in own]
    found = [
        (sure, room.guards.guarded(call) or guarded_by_others(room, call, depth + 1)) for room, call, sure in calls
    ]
    if not found:
        return _may_be_guarded(facts, function, known=depth > 0)
    return any(guarded for _, guarded in found) and all(guarded for sure, guarded in found if sure)


def is_given_to_some(facts: FileFacts, node: cst.CSTNode) -> bool:
    """Whether a test lets code run where an attribute was given a value, and who makes the object gives it on some ranks only.

    `if self.path is None: return`, where one rank is given a path under a rank test and the others leave it None.
    """
    function = facts.tree.function(node)
    owner = facts.tree.class_of(function) if function is not None else None
    given = _asked_parameters(facts, node, owner) if owner is not None else set()
    if owner is None or not given:
        return False
    users = facts.project.users(facts.path, *INDEXED)
    rooms = [facts, *(facts.other(path) for path in users if owner.name.value in facts.project.text(path))]
    made = [(room, call) for room in rooms if room for call in room.tree.all(cst.Call) if _makes(room, call, owner)]
    said = [(room, call) for room, call in made if given & {each.keyword.value for each in call.args if each.keyword}]
    return any(room.guards.guarded(call) for room, call in said)


def _asked_parameters(facts: FileFacts, node: cst.CSTNode, owner: cst.ClassDef) -> set[str]:
    """The names whose values a class keeps as the attributes that tests before a node ask for."""
    parts = [part for test, _ in facts.conditions(node) for part in facts.tree.within(test, cst.Attribute)]
    asked = {part.attr.value for part in parts if facts.classes.is_self(part.value)}
    sources = [source for name in asked for source, _ in facts.classes.attribute_sources(owner, name)]
    return {source.value for source in sources if isinstance(source, cst.Name)}


def _makes(room: FileFacts, call: cst.Call, owner: cst.ClassDef) -> bool:
    return (room.names.call(call) or "").rpartition(".")[2] == owner.name.value


def _may_be_guarded(facts: FileFacts, function: cst.FunctionDef, *, known: bool) -> bool:
    """Whether a test of the rank stands shortly before a call, in another file, of a method of the same name; where no
    caller is `known`, whether there is such a call."""
    if facts.tree.class_of(function) is None:
        return False
    name, aside = function.name.value, Path(facts.source.filename).absolute()
    pattern = rf"\.{re.escape(name)}\s*\("
    return occurs(facts.project, name, _RANK_TEST + pattern if known else pattern, aside)


def _like(facts: FileFacts, function: cst.FunctionDef) -> list[cst.Call]:
    """The calls of this file that may run a method, of receivers out of sight."""
    if facts.tree.class_of(function) is None:
        return []
    named = [each for each in facts.tree.all(cst.Call) if facts.names.method(each) == function.name.value]
    return [each for each in named if _is_of_anything(facts, each)]


def _called(facts: FileFacts, function: cst.FunctionDef) -> Iterator[tuple[FileFacts, cst.Call, bool]]:
    """The calls of other files that run a function, or, where the receiver is out of sight, may do so."""
    node, word = facts.tree.class_of(function), function.name.value
    rooms = dict.fromkeys(_bases(facts, node)) if node is not None else {}
    called = re.compile(rf"(?<!def )\b{word}[\s\\)]*\(")
    for path in facts.project.users(facts.path, *INDEXED):
        other = facts.other(path) if called.search(facts.project.text(path)) else None
        if other is not None:
            rooms[other] = None
    for room in rooms:
        for call in room.tree.all(cst.Call):
            if room.names.method(call) != word:
                continue
            if runs(facts, function, room, call) or _is_of_line(facts, node, room, call):
                yield room, call, True
            elif node is not None and _is_of_anything(room, call):
                yield room, call, False


def _is_of_anything(room: FileFacts, call: cst.Call) -> bool:
    """Whether a call is a method's, of an object out of sight."""
    if not isinstance(call.func, cst.Attribute) or room.names.of(call.func) or room.classes.is_self(call.func.value):
        return False
    return room.values.constructor(call.func.value) is None


def _bases(facts: FileFacts, node: cst.ClassDef) -> Iterator[FileFacts]:
    """The files in which the bases of a class stand."""
    for name in facts.classes.ancestors(node):
        found = facts.of_class(name) if name and not name.startswith(OUTSIDE) else None
        if found is not None and found[0] is not facts:
            yield found[0]


def _is_of_line(facts: FileFacts, node: cst.ClassDef | None, room: FileFacts, call: cst.Call) -> bool:
    """Whether a call is one through `self` in a class above or below the one whose method it may run."""
    around = room.tree.enclosing_class(call)
    if node is None or around is None or not isinstance(call.func, cst.Attribute):
        return False
    one, other = facts.names.defined(node), room.names.defined(around)
    related = facts.classes.name_is_a(one, other) or room.classes.name_is_a(other, one)
    related = related or any(_is_class(room, name, facts, node) for name in room.classes.ancestors(around))
    return related and room.classes.is_self(call.func.value)


def _is_class(room: FileFacts, name: str, facts: FileFacts, node: cst.ClassDef) -> bool:
    """Whether a name in one file is a class of another, wherever its packages start."""
    found = room.of_class(name) if name and not name.startswith(OUTSIDE) else None
    return found is not None and found[0].path == facts.path and found[1].name.value == node.name.value
