"""Schedules whose length counts optimizer steps, of which accumulation makes fewer than there are batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.tree import Loop

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 3


class Schedules:
    """The learning-rate schedules of one file beside its accumulation."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    def steps_per_update(self, call: cst.Call) -> cst.BaseExpression | None:
        """How often an iteration steps a scheduler for one step of its optimizer, where its length counts the latter.

        The size of the window that the optimizer waits for in the loop around, None where any of it is not sure.
        """
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        loops = self._tree.loops(call)
        if (
            not loops
            or receiver is None
            or any(self._tree.contains(loops[0], t) for t, _ in self._facts.conditions(call))
        ):
            return None
        made = self._maker(receiver)
        if made is None or not made.args:
            return None
        optimizer, owner = self._names.key(made.args[0].value), self._tree.owner(call)
        for update in self._facts.updates.updates(owner):
            same = self._tree.loops(update.call)[:1] == loops[:1] and self._names.key(update.optimizer) == optimizer
            size = self._window(update.call, loops[0]) if same else None
            if size is not None:
                lengths = [part for arg in made.args[1:] for part in self._parts(arg.value, 0)]
                return size if self._count_updates(lengths, size) else None
        return None

    def _window(self, step: cst.Call, loop: Loop) -> cst.BaseExpression | None:
        """The number of batches that an optimizer waits for, also where it steps behind the last one as well."""
        window = self._facts.accumulation.window(step)
        if window is not None:
            return window.size
        tests = [test for test, _ in self._facts.conditions(step) if self._tree.contains(loop.body, test)]
        spelled = [each for test in tests for part in self._parts(test, 2) for each in self._modulos(part)]
        inside = [each for each in spelled if self._tree.contains(loop.body, each)]
        return inside[0].right if len(set(spelled)) == 1 == len(set(inside)) else None

    def _modulos(self, test: cst.BaseExpression) -> list[cst.BinaryOperation]:
        found = self._tree.within(test, cst.BinaryOperation)
        return [each for each in found if isinstance(each.operator, cst.Modulo)]

    def _maker(self, receiver: cst.BaseExpression) -> cst.Call | None:
        """The one call that gives a scheduler: a class of torch or a helper of this file, whose arguments stand there."""
        if isinstance(receiver, cst.Attribute):
            node = self._facts.classes.self_class(receiver.value)
            values = self._facts.classes.attribute_values(node, receiver.attr.value) if node is not None else []
        else:
            values = self._facts.reaching.sources(receiver)
        only = values[0] if len(values) == 1 else None
        return only if isinstance(only, cst.Call) else None

    def _parts(self, expression: cst.BaseExpression, depth: int) -> list[cst.BaseExpression]:
        """An expression, and what the names in it are bound to once, and so on."""
        found = [expression]
        counted = [call for call in self._tree.within(expression, cst.Call) if self._names.call(call) == "builtins.len"]
        for name in self._tree.within(expression, cst.Name) if depth < _DEPTH else ():
            if any(self._tree.contains(call, name) for call in counted):
                continue  # how the loader was made does not matter
            bound = self._names.bindings.lookup(name)
            only = bound[0] if len(bound) == 1 and bound[0].kind is Kind.ASSIGN and not bound[0].path else None
            if only is not None and only.value is not None:
                found += self._parts(only.value, depth + 1)
        return found

    def _count_updates(self, lengths: list[cst.BaseExpression], size: cst.BaseExpression) -> bool:
        """Whether lengths are a number of batches that is divided by the size of the window, which they take no other use of."""
        divided, uses = False, 0
        for part in dict.fromkeys(lengths):
            spelled = [*self._tree.within(part, cst.Name, cst.Attribute), *self._tree.within(part, cst.Integer)]
            uses += sum(self._is_size(each, size) for each in spelled)
            for quotient in self._tree.within(part, cst.BinaryOperation):
                if self._is_updates(quotient, size):
                    uses, divided = uses - 1, True
        return divided and not uses

    def _is_updates(self, quotient: cst.BinaryOperation, size: cst.BaseExpression) -> bool:
        """Whether an expression is a number of batches divided by the size of the window."""
        divides = isinstance(quotient.operator, (cst.Divide, cst.FloorDivide)) and self._is_size(quotient.right, size)
        return divides and self._counts(quotient.left)

    def _counts(self, dividend: cst.BaseExpression) -> bool:
        calls = [call for part in self._parts(dividend, 1) for call in self._tree.within(part, cst.Call)]
        return any(self._names.call(call) == "builtins.len" for call in calls)

    def _is_size(self, expression: cst.BaseExpression, size: cst.BaseExpression) -> bool:
        """Whether an expression is the size of a window: the same number, or the same name of one scope or object."""
        number, key = self._names.constant(size), self._names.key(size)
        if isinstance(size, cst.Integer) or isinstance(expression, cst.Integer):
            return isinstance(number, int) and self._names.constant(expression) == number
        if not key or self._names.key(expression) != key:
            return False
        root, other = _root(size), _root(expression)
        return isinstance(root, cst.Name) and isinstance(other, cst.Name) and self._is_same(root, other)

    def _is_same(self, one: cst.Name, other: cst.Name) -> bool:
        bound = self._names.bindings.lookup(one)
        if self._facts.classes.self_class(one) is not None:
            return self._facts.classes.self_class(one) is self._facts.classes.self_class(other)
        return len(bound) == 1 and bound == self._names.bindings.lookup(other)


def _root(expression: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(expression, (cst.Attribute, cst.Subscript)):
        expression = expression.value
    return expression
