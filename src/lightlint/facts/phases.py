"""Loops that train or evaluate by turns, as a switch says: `if phase == "train"` decides on the mode and on the backward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.unknown import UNKNOWN

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts


@dataclass(frozen=True, slots=True)
class Switch:
    """A variable and the value with which it lets training happen: `phase` and "train", `train` and True."""

    name: str
    value: object


class Phases:
    """The switches of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names

    def switch(self, owner: cst.FunctionDef | cst.Module, backwards: list[cst.Call]) -> Switch | None:
        """The switch on which every backward pass of a function waits, and that is set to evaluate as well in sight."""
        found: set[Switch] | None = None
        for each in backwards:
            given = {self._of(test, outcome) for test, outcome in self._facts.conditions(each)} - {None}
            on = {switch for switch in given if switch is not None}
            found = on if found is None else found & on
        sure = [switch for switch in found or () if self._takes_another(owner, switch, backwards[0])]
        return sure[0] if len(sure) == 1 else None

    def _of(self, test: cst.BaseExpression, outcome: bool) -> Switch | None:
        """The switch that a test asks, with the value it has where the test comes out so."""
        match test:
            case cst.UnaryOperation(operator=cst.Not()):
                return self._of(test.expression, not outcome)
            case cst.Name():
                return Switch(test.value, outcome)
            case cst.Comparison(left=cst.Name() as left, comparisons=[only]):
                value = self._names.constant(only.comparator)
                same = isinstance(only.operator, cst.Equal)
                told = same or isinstance(only.operator, cst.NotEqual)
                return Switch(left.value, value) if told and same is outcome and isinstance(value, str) else None
        return None

    def evaluates(self, call: cst.Call, switch: Switch) -> bool:
        """Whether a call puts a module in eval mode where the switch is another: `net.train(phase == "train")`, or `net.eval()`."""
        if self._names.method(call) == "train" and len(call.args) == 1:
            return self._of(call.args[0].value, True) == switch
        off = [self._of(test, not outcome) for test, outcome in self._facts.conditions(call)]
        return self._names.method(call) == "eval" and not call.args and switch in off

    def asks(self, node: cst.CSTNode, switch: Switch) -> bool:
        """Whether a test of the switch's variable leads to a node."""
        tests = [test for test, _ in self._facts.conditions(node)]
        return any(name.value == switch.name for test in tests for name in self._facts.tree.within(test, cst.Name))

    def _takes_another(self, owner: cst.FunctionDef | cst.Module, switch: Switch, node: cst.CSTNode) -> bool:
        """Whether the variable surely is something else at times: an item of a loop around, or what a call gives."""
        found = self._names.bindings.lookup_in(switch.name, owner)
        if len(found) != 1:
            return False
        others = [each for each in self._constants(found[0], node) if each is not UNKNOWN and each != switch.value]
        return any(isinstance(each, type(switch.value)) for each in others)

    def _constants(self, binding: Binding, node: cst.CSTNode) -> list[object]:
        function = binding.scope
        if binding.kind is Kind.LOOP and not binding.path:
            around = any(self._facts.tree.contains(loop, binding.site) for loop in self._facts.tree.loops(node))
            items = self._names.constant(binding.value) if around else None
            return items if isinstance(items, list) else []
        if binding.kind is not Kind.PARAMETER or not isinstance(function, cst.FunctionDef):
            return []
        calls = self._facts.steps.calls_of.get(function, ())
        given = [self._facts.values.given(function, each, binding.name) or binding.value for each in calls]
        return [self._names.constant(each) for each in given]
