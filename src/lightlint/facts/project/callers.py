"""Where values come from that callers hand to a file's functions, also those in other files of the project."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding
from lightlint.facts.steps.steps import Steps

if TYPE_CHECKING:
    from pathlib import Path

    from lightlint.facts.linked import Linked

_DEPTH = 4
_MOST = 24  # ways after which a search gives up


@dataclass(frozen=True, slots=True)
class Hand:
    """A place on a value's way: how it is spelled in the file of `facts`, and the call that hands it on from there."""

    facts: Linked
    value: cst.BaseExpression
    call: cst.Call | None = None


"""From where a value is used to where its origins are in sight."""


def passed(
    facts: Linked, parameter: Binding, *words: str
) -> Iterator[tuple[Linked, cst.Call, cst.BaseExpression | None]]:
    """The calls in the project of a parameter's function, each with the facts of its file and what it gives for that.

    Other files are looked at if they hold one of some words of the index; None is given where that is out of sight.
    """
    function = parameter.scope
    if isinstance(function, cst.FunctionDef):
        for other, call in _calls(facts, function, words):
            yield other, call, _given(facts, function, call, parameter.name)


def _kept(facts: Linked, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """The one name whose value `self.optimizer` gets; any other expression itself."""
    node = facts.classes.self_class(value.value) if isinstance(value, cst.Attribute) else None
    if node is None or not isinstance(value, cst.Attribute):
        return value
    sources = [
        source
        for each in facts.classes.line(node)
        for source in facts.classes.attribute_sources(each, value.attr.value)
    ]
    return sources[0][0] if len(sources) == 1 and not sources[0][1] else None


def _calls(facts: Linked, function: cst.FunctionDef, words: tuple[str, ...]) -> Iterator[tuple[Linked, cst.Call]]:
    """The calls of a function, and those that make an object if it is `__init__`, in this file and its users."""
    for call in (*facts.fact(Steps).calls_of.get(function, ()), *facts.hooks.constructions.get(function, ())):
        yield facts, call
    node = facts.tree.class_of(function)
    if facts.tree.function(function) is not None or (node is not None and facts.tree.function(node) is not None):
        return  # nobody else sees it
    making = node if function.name.value == "__init__" else None
    word = (making or function).name.value
    for path in facts.project.users(facts.path, *words):
        other = facts.other(path) if word in facts.project.text(path) else None
        for call in other.tree.all(cst.Call) if other is not None else ():
            if other is not None and other.names.method(call) == word and runs(facts, function, other, call):
                yield other, call


def runs(facts: Linked, function: cst.FunctionDef, other: Linked, call: cst.Call) -> bool:
    """Whether a call in another file surely runs a function of this one."""
    near = other.path.parent
    node = facts.tree.class_of(function)
    name = other.names.call(call) or ""
    if node is None:
        return "." in name and facts.project.find_function(name, near) == facts.path
    if function.name.value == "__init__":
        return _is_class(facts, node, name, near)
    origin = other.values.constructor(call.func.value) if isinstance(call.func, cst.Attribute) else None
    return origin is not None and origin.call is not None and _is_class(facts, node, origin.name, near)


def _is_class(facts: Linked, node: cst.ClassDef, name: str, near: Path) -> bool:
    """Whether a name that a file in a folder uses stands for a class of this file."""
    found = facts.project.find_class(name, near) if "." in name else None
    return found is not None and found[1] == facts.path and found[0].name == node.name.value


def _given(facts: Linked, function: cst.FunctionDef, call: cst.Call, parameter: str) -> cst.BaseExpression | None:
    """What a call, of this file or another, gives for a parameter; None for what is out of sight."""
    plain = [each.name.value for each in (*function.params.posonly_params, *function.params.params)]
    bound = facts.tree.class_of(function) is not None and not facts.classes.is_static(function)
    position = plain.index(parameter) - bound if parameter in plain else None
    arg = facts.names.argument(call, parameter, position)
    return arg.value if arg is not None and not arg.star else None
