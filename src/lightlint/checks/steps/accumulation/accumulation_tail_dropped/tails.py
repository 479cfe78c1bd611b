"""Whether a program asks how many batches are left over behind its last window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import unpacked
from lightlint.facts.steps.accumulation import Window

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts


def is_rest_asked(facts: FileFacts, call: cst.Call, window: Window) -> bool:
    """Whether the function around a step, or what makes its object, asks for the rest by the same modulo of a count."""
    sizes = {facts.tree.module.code_for_node(each) for each in (window.size, *facts.reaching.sources(window.size))}
    owner = facts.tree.owner(call)
    for each in facts.tree.own(owner, cst.BinaryOperation):
        if _is_rest(facts, each) and facts.tree.module.code_for_node(each.right) in sizes:
            return True
    node = facts.tree.enclosing_class(call)
    maker = facts.classes.method(node, "__init__") if node is not None else None
    if maker is None or maker is owner:
        return False
    return any(not sizes.isdisjoint(_spelled(facts, maker, each.right)) for each in _checked(facts, maker))


def _is_rest(facts: FileFacts, operation: cst.BinaryOperation) -> bool:
    """Whether an operation takes the modulo of what a call counted."""
    if not isinstance(operation.operator, cst.Modulo):
        return False
    return any(facts.tree.within(each, cst.Call) for each in facts.reaching.sources(operation.left))


def _checked(facts: FileFacts, function: cst.FunctionDef) -> Iterator[cst.BinaryOperation]:
    """The rests for which a function raises: it goes on only where there is none."""
    tests = [each.test for each in facts.tree.own(function.body, cst.Assert)]
    tests += [each.test for each in facts.tree.own(function.body, cst.If) if facts.tree.own(each.body, cst.Raise)]
    for test in tests:
        names = facts.tree.within(test, cst.Name)
        for source in (test, *(each for name in names for each in facts.reaching.sources(name))):
            yield from (each for each in facts.tree.within(source, cst.BinaryOperation) if _is_rest(facts, each))


def _spelled(facts: FileFacts, maker: cst.FunctionDef, size: cst.BaseExpression) -> set[str]:
    """How `__init__` spells a size, and how the other methods do, as it keeps that or what that is an attribute of."""
    text = facts.tree.module.code_for_node(size)
    found = {text}
    assigns = facts.tree.own(maker.body, cst.Assign)
    for target, value, path in (part for each in assigns for part in unpacked(each.targets[0].target, each.value)):
        kept = facts.names.key(target) if isinstance(target, cst.BaseExpression) else ""
        source = facts.names.key(value) if not path else ""
        if kept.startswith("self.") and source and (text == source or text.startswith(f"{source}.")):
            found.add(kept + text.removeprefix(source))
    return found
