"""Saves that write another file in each turn of a loop: nothing is written over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_COUNTS = re.compile(r"(?:epoch|step|iter|iteration|round|turn|count|idx|index)$", re.IGNORECASE)
_MADE_OF = frozenset(
    ["os.path.join", "pathlib.Path", "builtins.str", "builtins.int", "builtins.round", "builtins.format"]
)
_NEW_EACH_TIME = re.compile(r"(?:datetime|time|uuid)\.")
_SAVES = re.compile(r"save|checkpoint|ckpt|dump|write|open")
_DEPTH = 4


def goes_apart(facts: FileFacts, call: cst.Call) -> bool:
    """Whether a call in a loop may save under another name in each turn."""
    callee = facts.instances.callee(call)
    if callee is None:
        return any(_varies(facts, each, facts.tree.loops(call)) for each in _named(facts, call))
    saves = [each for each in facts.tree.own(callee.body, cst.Call) if _SAVES.search(facts.names.method(each))]
    for path in (path for each in saves for path in _named(facts, each)):
        if _varies(facts, path, facts.tree.loops(call)):
            return True
        given = (facts.values.given(callee, call, word) for word in _parameters(facts, path))
        if any(each is not None and _varies(facts, each, facts.tree.loops(call)) for each in given):
            return True
    return False


def _named(facts: FileFacts, call: cst.Call) -> list[cst.BaseExpression]:
    """What may say under which name a call saves."""
    if facts.names.call(call) == "torch.save":
        path = facts.names.argument(call, "f", 1)
        return [path.value] if path is not None else []
    return [] if facts.names.method(call) == "deepcopy" else [arg.value for arg in call.args]


def _varies(facts: FileFacts, value: cst.BaseExpression, loops: Sequence[cst.CSTNode], depth: int = 0) -> bool:
    """Whether a value may be another one in each turn of some loops; what a dict holds is saved, and names nothing."""
    for part in _parts(facts, value):
        if isinstance(part, cst.Call):
            name = facts.names.call(part) or ""
            if _NEW_EACH_TIME.match(name):
                return True
        elif isinstance(part, cst.Attribute):
            if _COUNTS.search(part.attr.value):
                return True
        elif any(_is_turned(facts, each, loops, depth) for each in _bound(facts, part)):
            return True
    return False


def _is_turned(
    facts: FileFacts,
    bound: tuple[Kind, cst.CSTNode, cst.BaseExpression | None],
    loops: Sequence[cst.CSTNode],
    depth: int,
) -> bool:
    kind, site, value = bound
    inside = any(facts.tree.contains(loop, site) for loop in loops)
    if kind in (Kind.LOOP, Kind.AUGMENT):
        return inside
    if kind is not Kind.ASSIGN or value is None or depth > _DEPTH:
        return False
    made = facts.names.call(value) if isinstance(value, cst.Call) else ""
    is_text = made in _MADE_OF or (isinstance(value, cst.Call) and facts.names.method(value) == "format")
    if inside and not is_text and facts.tree.within(value, cst.Call):
        return True  # a result, or what is worked out of it
    return _varies(facts, value, loops, depth + 1)


def _parameters(facts: FileFacts, value: cst.BaseExpression, depth: int = 0) -> Iterator[str]:
    """The parameters of a function that a value is made of, also through its names."""
    for part in (each for each in _parts(facts, value) if isinstance(each, cst.Name)):
        for kind, _, made in _bound(facts, part):
            if kind is Kind.PARAMETER:
                yield part.value
            elif made is not None and depth < _DEPTH:
                yield from _parameters(facts, made, depth + 1)


def _bound(facts: FileFacts, name: cst.Name) -> list[tuple[Kind, cst.CSTNode, cst.BaseExpression | None]]:
    return [(each.kind, each.site, each.value) for each in facts.names.bindings.lookup(name)]


def _parts(facts: FileFacts, value: cst.BaseExpression) -> Iterator[cst.Name | cst.Attribute | cst.Call]:
    """The names, attributes and calls in a value, but for those in dicts."""
    dicts = facts.tree.within(value, cst.Dict)
    named = facts.tree.within(value, cst.Name, cst.Attribute)
    for part in (*named, *facts.tree.within(value, cst.Call)):
        if not any(facts.tree.contains(each, part) for each in dicts):
            yield part
