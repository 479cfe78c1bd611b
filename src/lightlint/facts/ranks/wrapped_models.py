"""Which of several DDP models a value is, or is the inner module of: the calls that made it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.ranks.processes import DATA_PARALLEL
from lightlint.facts.steps.steps import Steps
from lightlint.facts.values.values import SAME_OBJECT

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_DEPTH = 6

Made = frozenset[cst.Call] | None
"""Calls that make DDP models, None where one is out of sight."""


def made(facts: Linked, value: cst.CSTNode | None, depth: int = 0) -> Made:
    """The calls that can have made the DDP model which a value is, or whose inner module it is."""
    if depth > _DEPTH:
        return None
    match value:
        case cst.IfExp():
            return _all(made(facts, arm, depth + 1) for arm in (value.body, value.orelse))
        case cst.Name():
            return _all(_bound(facts, each, depth + 1) for each in facts.reaching.bindings(value))
        case cst.Attribute(attr=cst.Name(value="module")):
            return made(facts, value.value, depth + 1)
        case cst.Attribute():
            node = facts.classes.self_class(value.value)
            held = facts.classes.attribute_values(node, value.attr.value) if node is not None else []
            return _all(made(facts, each, depth + 1) for each in held)
        case cst.Call():
            return _by_call(facts, value, depth)
    return None


def _bound(facts: Linked, binding: Binding, depth: int) -> Made:
    function = binding.scope
    if binding.kind is Kind.PARAMETER and isinstance(function, cst.FunctionDef):
        calls = (*facts.fact(Steps).calls_of.get(function, ()), *facts.hooks.constructions.get(function, ()))
        return _all(made(facts, facts.values.given(function, each, binding.name), depth) for each in calls)
    known = binding.kind is Kind.ASSIGN and not binding.path
    return made(facts, binding.value, depth) if known else None


def _by_call(facts: Linked, call: cst.Call, depth: int) -> Made:
    name = facts.names.call(call)
    if name == DATA_PARALLEL:
        return frozenset([call])
    if name in {"torch.compile", "builtins.getattr"} and call.args:
        return made(facts, call.args[0].value, depth + 1)
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in SAME_OBJECT:
        return made(facts, call.func.value, depth + 1)
    callee = facts.hooks.callee(call)
    found = _all(made(facts, each, depth + 1) for each in facts.values.returns(callee)) if callee is not None else None
    if found is None or callee is None:
        return None
    # a function that wraps what it is given makes another model each time
    return frozenset(call if facts.tree.contains(callee, each) else each for each in found)


def _all(found: Iterable[Made]) -> Made:
    """The calls of all, None where one is unknown or there are none."""
    calls = set[cst.Call]()
    for each in found:
        if each is None:
            return None
        calls |= each
    return frozenset(calls) or None
