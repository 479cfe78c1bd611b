"""What gradient scalers are asked and told: `update()` behind each `unscale_`, and the scale that other values are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.tree import Loop

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

# methods of a scaler that leave it as it is between `unscale_` and `update`
_KEEPING = {"scale", "unscale_", "step", "get_scale", "is_enabled", "state_dict", "get_growth_factor"}
_DEPTH = 4


class Scaling:
    """The order of the calls of the gradient scalers of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    def _makers(self, expression: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The expressions that the names, attributes of `self` and functions of this file in an expression stand for."""
        for name in self._tree.within(expression, cst.Name):
            above = self._tree.parent(name)
            if not isinstance(above, cst.Attribute) or above.attr is not name:
                for binding in self._names.bindings.lookup(name):
                    yield from self._given(binding)
        for attribute in self._tree.within(expression, cst.Attribute):
            node = self._facts.classes.self_class(attribute.value)
            yield from self._facts.classes.attribute_values(node, attribute.attr.value) if node is not None else ()
        for call in self._tree.within(expression, cst.Call):
            callee = self._facts.steps.callee(call)
            for returned in self._facts.values.returns(callee) if callee is not None else ():
                if returned is not None:
                    yield returned

    def _given(self, binding: Binding) -> Iterator[cst.BaseExpression]:
        """What a name gets: for a parameter, what the calls of its function give."""
        if binding.kind is not Kind.PARAMETER:
            if binding.value is not None:
                yield binding.value
        elif isinstance(binding.scope, cst.FunctionDef):
            for call in self._facts.steps.calls_of.get(binding.scope, ()):
                given = self._facts.values.given(binding.scope, call, binding.name)
                if given is not None:
                    yield given

    def left_out(self, unscale: cst.Call) -> cst.Call | None:
        """The `update()` that a test can leave out in an iteration which unscaled, so that `unscale_` comes a second time.

        The test asks for something that changes in the loop, and `unscale_` does not depend on such a test of its own.
        """
        func, loops = unscale.func, self._tree.loops(unscale)
        if self._names.method(unscale) != "unscale_" or not loops or not isinstance(func, cst.Attribute):
            return None
        key, loop, updates = self._names.key(func.value), loops[0], self._facts.updates
        if not key or not updates.is_scaler(func.value) or self._is_replaced(key, loop):
            return None
        owner = self._tree.owner(unscale)
        resets = [each for each in updates.own(owner) if self._may_reset(each, key)]
        told = [each for each in resets if self._is_told(each, key) and self._names.method(each) == "update"]
        skipped = [each for each in told if self._is_rarer(each, unscale, loop)]
        flow = self._facts.flow(owner)
        if not skipped or not updates.updates(owner):
            return None
        if not flow.reaches_in_later_iteration(loop, unscale, [unscale], avoiding=resets):
            return None
        return skipped[0]

    def _is_told(self, call: cst.Call, key: str) -> bool:
        return isinstance(call.func, cst.Attribute) and self._names.key(call.func.value) == key

    def _may_reset(self, call: cst.Call, key: str) -> bool:
        """Whether a call updates a scaler, or may do so: a helper with an `update()` in it, a function given the scaler."""
        if self._is_told(call, key):
            return self._names.method(call) not in _KEEPING
        given = any(self._names.key(arg.value) == key for arg in call.args)
        return given or self._facts.steps.leads(
            call, lambda each: self._names.method(each) == "update" and not each.args
        )

    def _is_replaced(self, key: str, loop: Loop) -> bool:
        """Whether a loop binds the scaler anew, reaches into it, or catches what it raises."""
        targets = [each.target for each in self._tree.within(loop, cst.AssignTarget)]
        inside = [each for each in self._tree.within(loop, cst.Attribute) if self._names.key(each.value) == key]
        private = any(each.attr.value.startswith("_") for each in inside)
        return private or key in map(self._names.key, targets) or bool(self._tree.within(loop, cst.Try, cst.TryStar))

    def _is_rarer(self, update: cst.Call, unscale: cst.Call, loop: Loop) -> bool:
        """Whether a test that changes from iteration to iteration decides about one call and surely not about the other."""
        if not self._tree.contains(loop, update) or self._tree.loops(update)[0] is not loop:
            return False
        ours, theirs = self._tests(unscale, loop), self._tests(update, loop)
        alone = [each for each in ours if each not in theirs]
        extra = [each for each in theirs if each not in ours]
        words = {word for test, _ in alone for word in self._words(test)}
        related = any(words & self._words(test) for test, _ in extra)
        return not related and not self._change(alone, loop) and self._change(extra, loop)

    def _tests(self, call: cst.Call, loop: Loop) -> list[tuple[cst.BaseExpression, bool]]:
        return [each for each in self._facts.conditions(call) if self._tree.contains(loop.body, each[0])]

    def _words(self, test: cst.BaseExpression) -> set[str]:
        return {name.value for name in self._tree.within(test, cst.Name)} - {"self"}

    def _change(self, tests: list[tuple[cst.BaseExpression, bool]], loop: Loop) -> bool:
        """Whether one of some tests asks for what the loop binds, or for every n-th of something."""
        names = [name for test, _ in tests for name in self._tree.within(test, cst.Name)]
        bound = [each.site for name in names for each in self._names.bindings.lookup(name)]
        divided = [part for test, _ in tests for part in self._tree.within(test, cst.BinaryOperation)]
        counts = any(isinstance(each.operator, cst.Modulo) for each in divided)
        return counts or any(self._tree.contains(loop, site) for site in bound)
