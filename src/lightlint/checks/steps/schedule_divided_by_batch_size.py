from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import LoaderMade, ScheduleMade
from lightlint.engine.operators import factors_of
from lightlint.facts.loading import LOADER

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value


_SCHEDULES = re.compile(r"torch\.optim\.lr_scheduler\.|transformers\.(?:optimization\.)?get_\w*schedule")


class ScheduleDividedByBatchSize(Check):
    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        if not isinstance(node.operator, (cst.Divide, cst.FloorDivide)) or not self.names.key(node.right):
            return
        counted = next((each for each in self._factors(node.left) if self._counts_batches_of(each, node.right)), None)
        if counted is not None and self._is_length(node):
            size, loader = self.code.text_of(node.right), self.code.text_of(counted)
            self.report(
                node, f"`{loader}` counts batches of `{size}` already: the schedule ends `{size}` times too early"
            )

    def _factors(self, value: cst.BaseExpression) -> list[cst.BaseExpression]:
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Multiply):
            return [*self._factors(value.left), *self._factors(value.right)]
        return [value]

    def _counts_batches_of(self, value: cst.BaseExpression, size: cst.BaseExpression) -> bool:
        """Whether a value is the length of a loader that was made with a batch size."""
        if self.names.call(value) != "builtins.len" or not isinstance(value, cst.Call) or len(value.args) != 1:
            return False
        origins = self.values.origins(value.args[0].value)
        calls = [each.call for each in origins if each.name == LOADER and each.call is not None]
        given = [self.names.argument(each, "batch_size", 1) for each in calls]
        same = [each for each in given if each is not None and self._is_same(each.value, size)]
        return bool(same) and len(same) == len(origins)

    def _is_same(self, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Whether two names are of one value: spelled alike, in scopes that see one binding or one object."""
        if self.names.key(one) != self.names.key(other):
            return False
        first, second = _root(one), _root(other)
        node = self.classes.self_class(first)
        if node is not None:
            return node is self.classes.self_class(second)
        bound = self.names.bindings.lookup(first) if isinstance(first, cst.Name) else []
        return len(bound) == 1 and isinstance(second, cst.Name) and bound == self.names.bindings.lookup(second)

    def _is_length(self, node: cst.BinaryOperation) -> bool:
        """Whether a number is given to what makes a scheduler, by a name or as it stands."""
        if self._is_given(node):
            return True
        assign = next((each for each in self.tree.ancestors(node) if isinstance(each, cst.Assign)), None)
        target = assign.targets[0].target if assign is not None and len(assign.targets) == 1 else None
        if not isinstance(target, cst.Name):
            return False
        names = (each for each in self.tree.own(self.tree.owner(node), cst.Name) if each.value == target.value)
        bound = self.names.bindings.lookup(target)
        return len(bound) == 1 and any(self._is_given(each) for each in names if not self.names.is_word(each))

    def _is_given(self, value: cst.CSTNode) -> bool:
        call = next((each for each in self.tree.ancestors(value) if isinstance(each, (cst.Call, cst.Assign))), None)
        while isinstance(call, cst.Call):
            if self._makes_schedule(call):
                return True
            call = next((each for each in self.tree.ancestors(call) if isinstance(each, (cst.Call, cst.Assign))), None)
        return False

    def _makes_schedule(self, call: cst.Call) -> bool:
        if _SCHEDULES.match(self.names.call(call) or ""):
            return True
        callee = self.hooks.callee(call)
        inside = self.tree.own(callee.body, cst.Call) if callee is not None else []
        return any(_SCHEDULES.match(self.names.call(each) or "") for each in inside)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Lengths of schedules that are a number of batches over the size of these batches."""
        for path in entry.paths:
            loaders = [event.loader for event in path.of(LoaderMade)]
            for event in path.of(ScheduleMade):
                factors = dict(_factors(event.schedule.length))
                for loader in loaders:
                    keys = {("batch size", loader.number), *dict(_factors(loader.arguments.get("batch_size")))}
                    if factors.get(("length", loader.number), 0) > 0 and any(factors.get(key, 0) < 0 for key in keys):
                        message = (
                            "divides a number of batches by their size: the schedule ends that many times too early"
                        )
                        yield Fault.at(event, message)


def _factors(value: Value | None) -> tuple[tuple[Hashable, int], ...]:
    return (factors_of(value) if value is not None else None) or ()


def _root(expression: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(expression, cst.Attribute):
        expression = expression.value
    return expression
