"""What a value can be: followed through names, attributes, parameters and functions, into other files of the project too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.project.across import OUTSIDE, elsewhere
from lightlint.facts.project.options import command_default
from lightlint.facts.values.containers import item_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lightlint.facts.linked import Linked

    # an expression, None for one out of sight, with the facts of its file
    Found = tuple[Linked, cst.BaseExpression | None]

_DEPTH = 6
# what declares a field or an option with a default, and where that stands
_DECLARING = {"dataclasses.field": None, "pydantic.Field": 0, "typer.Option": 0}


def sources(facts: Linked, value: cst.BaseExpression | None, depth: int = 0) -> Iterator[Found]:
    """The expressions that a value can come from, each way of the program for itself."""
    if value is None or depth > _DEPTH:
        yield facts, None
        return
    match value:
        case cst.Name():
            found = facts.reaching.bindings(value)
            if found:
                for each in found:
                    yield from _bound(facts, each, value, depth + 1)
            else:
                yield facts, value
        case cst.Attribute():
            yield from _kept(facts, value, depth + 1)
        case cst.IfExp():
            yield from sources(facts, value.body, depth + 1)
            yield from sources(facts, value.orelse, depth + 1)
        case cst.NamedExpr():
            yield from sources(facts, value.value, depth + 1)
        case cst.Call() if facts.names.call(value) in _DECLARING:
            default = facts.names.argument(value, "default", _DECLARING[facts.names.call(value) or ""])
            yield from sources(facts, default.value if default is not None else None, depth + 1)
        case cst.Call():
            yield from _returned(facts, value, depth + 1)
        case _:
            yield facts, value


def _bound(facts: Linked, binding: Binding, name: cst.Name, depth: int) -> Iterator[Found]:
    """What one binding gives a name."""
    match binding.kind:
        case Kind.ASSIGN if not binding.path:
            yield from sources(facts, binding.value, depth)
        case Kind.ASSIGN if len(binding.path) == 1 and isinstance(binding.value, (cst.Tuple, cst.List)):
            yield from sources(facts, item_of(binding.value, binding.path[0]), depth)
        case Kind.PARAMETER if isinstance(binding.scope, cst.FunctionDef):
            function = binding.scope
            calls = [*facts.hooks.calls_of.get(function, ()), *facts.hooks.constructions.get(function, ())]
            given = [facts.hooks.given(function, call, binding.name) for call in calls]
            default = binding.value or command_default(facts.names, function, binding.name)
            for each in [each or default for each in given] or [default]:
                yield from sources(facts, each, depth)
        case Kind.IMPORT:
            yield from _imported(facts, name, depth)
        case _:
            yield facts, None


def _kept(facts: Linked, attribute: cst.Attribute, depth: int) -> Iterator[Found]:
    """What an attribute of an object, a class or a module of the project holds."""
    own = facts.classes.self_class(attribute.value)
    name = facts.names.of(attribute.value)
    if own is None and name and not name.startswith(OUTSIDE):
        room = facts.of_class(name)
        if room is None:
            yield from _imported(facts, attribute, depth)
            return
        facts, own = room
    if own is None:
        yield facts, attribute
        return
    for home, node in _line(facts, own):
        kept = home.classes.attribute_sources(node, attribute.attr.value)
        for value, path in kept:
            yield from sources(home, value if not path else None, depth)
        if kept:
            return
    yield facts, None


def _line(facts: Linked, node: cst.ClassDef) -> Iterator[tuple[Linked, cst.ClassDef]]:
    """A class and its bases, those of other files of the project too."""
    yield facts, node
    for name in facts.classes.ancestors(node):
        found = facts.of_class(name) if not name.startswith(OUTSIDE) else None
        if found is not None:
            yield found


def _imported(facts: Linked, node: cst.Name | cst.Attribute, depth: int) -> Iterator[Found]:
    """What a name of another module stands for; a library's for itself."""
    room, _, last = (facts.names.of(node) or "").rpartition(".")
    other = facts.of_module(room) if room and not room.startswith(OUTSIDE) else None
    found = other.names.bindings.lookup_in(last, other.tree.module) if other is not None else []
    if other is None or not found:
        yield facts, node
    for each in found if other is not None else []:
        yield from sources(other or facts, each.value if each.kind is Kind.ASSIGN and not each.path else None, depth)


def _returned(facts: Linked, call: cst.Call, depth: int) -> Iterator[Found]:
    """What a function of the project gives; the call itself of any other."""
    callee = facts.hooks.callee(call)
    place = elsewhere(facts, facts.names.call(call) or "", facts.path.parent, "return") if callee is None else None
    home, function = (place.facts, place.function) if place is not None else (facts, callee)
    returns = home.values.returns(function) if function is not None else []
    for each in returns:
        yield from sources(home, each, depth)
    if not returns:
        yield facts, call


def asked_by(facts: Linked, test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """A test, with what the names in it were given and what the functions of the file that it calls give."""
    names = facts.tree.within(test, cst.Name)
    bound = (each.value for name in names for each in facts.reaching.bindings(name) if each.kind is Kind.ASSIGN)
    callees = (facts.hooks.callee(call) for call in facts.tree.within(test, cst.Call))
    returned = (each for callee in callees if callee is not None for each in facts.values.returns(callee))
    return [test, *(each for each in (*bound, *returned) if each is not None)]
