"""Generators that go over a DataLoader again and again, and whose batches train: step-based loops draw from them by `next`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.tree import Loop

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Stream:
    """What a generator draws again and again, as the call that made it gives it, and the loop that repeats it."""

    drawn: cst.BaseExpression
    loop: Loop


def training_streams(facts: FileFacts) -> Iterator[Stream]:
    """The streams from which a loop with a backward pass draws."""
    generators = [each for each in facts.tree.all(cst.FunctionDef) if _repeated(facts, each)]
    if not generators:
        return
    made = {call for drawn in _training_draws(facts) for call in _makers(facts, drawn, 0)}
    for function in generators:
        for loop, drawn in _repeated(facts, function):
            for call in (each for each in made if facts.hooks.callee(each) is function):
                given = facts.values.given(function, call, drawn.value) if isinstance(drawn, cst.Name) else None
                for each in _before_renamed(facts, given if given is not None else drawn):
                    yield Stream(each, loop)


def _before_renamed(facts: FileFacts, drawn: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a parameter holds before the function gives its name to something else: `loader = endless(loader)`."""
    found = facts.reaching.bindings(drawn) if isinstance(drawn, cst.Name) else []
    renamed = isinstance(drawn, cst.Name) and len(facts.bindings.lookup(drawn)) > len(found) == 1
    function = found[0].scope if renamed and found[0].kind is Kind.PARAMETER else None
    if not isinstance(function, cst.FunctionDef):
        return [drawn]
    given = [facts.values.given(function, call, found[0].name) for call in facts.steps.calls_of.get(function, ())]
    return [each for each in given if each is not None] or [drawn]


def _repeated(facts: FileFacts, function: cst.FunctionDef) -> list[tuple[Loop, cst.BaseExpression]]:
    """The loops of a generator that go over something again and again and yield what it holds."""
    found: list[tuple[Loop, cst.BaseExpression]] = []
    for each in facts.tree.own(function.body, cst.Yield):
        loops = facts.tree.loops(each)
        if isinstance(each.value, cst.From):
            found += [(loops[0], each.value.item)] if loops else []
        elif len(loops) > 1 and isinstance(loops[0], cst.For):
            drawn = facts.values.iterated(loops[0].iter)
            found += [(loops[1], drawn)] if isinstance(drawn, cst.BaseExpression) else []
    return found


def _training_draws(facts: FileFacts) -> Iterator[cst.CSTNode]:
    """What the loops with a backward pass iterate, or call `next` on."""
    for call in facts.tree.all(cst.Call):
        draws = bool(call.args) and facts.names.call(call) == "builtins.next"
        if draws and any(_trains(facts, loop) for loop in facts.tree.loops(call)):
            yield call.args[0].value
    for loop in facts.tree.all(cst.For):
        if _trains(facts, loop):
            yield facts.values.iterated(loop.iter)


def _trains(facts: FileFacts, loop: Loop) -> bool:
    return bool(facts.steps.runs(loop.body, facts.loops.is_backward))


def _makers(facts: FileFacts, value: cst.CSTNode | None, depth: int) -> Iterator[cst.Call]:
    """The calls of functions of this file that give a value, through names, attributes and functions that return them."""
    if depth > _DEPTH:
        return
    match value:
        case cst.Call():
            callee = facts.hooks.callee(value)
            if callee is not None:
                yield value
                for returned in facts.values.returns(callee):
                    yield from _makers(facts, returned, depth + 1)
            elif facts.names.call(value) == "builtins.iter" and value.args:
                yield from _makers(facts, value.args[0].value, depth + 1)
        case cst.Name():
            for binding in facts.bindings.lookup(value):
                if binding.kind is Kind.ASSIGN and not binding.path:
                    yield from _makers(facts, binding.value, depth + 1)
                elif binding.kind is Kind.PARAMETER and isinstance(binding.scope, cst.FunctionDef):
                    for call in facts.steps.calls_of.get(binding.scope, ()):
                        yield from _makers(facts, facts.values.given(binding.scope, call, value.value), depth + 1)
        case cst.Attribute():
            node = facts.classes.self_class(value.value)
            for each in facts.classes.attribute_values(node, value.attr.value) if node is not None else ():
                yield from _makers(facts, each, depth + 1)
