from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import DigitsLost
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LOG, _EXP = "`log` of a sum with 1 loses the digits of small values", "`exp` less 1 loses the digits of small values"


class DigitsLostNearZero(Check):
    asks_rest = frozenset(["log", "exp"])

    def visit_Call(self, call: cst.Call) -> None:
        """`torch.log(1 + x)`."""
        value = self._only_argument(call, "torch.log")
        if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Add):
            return
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if self._is_one(one):
                self.report(call, _LOG, repair=self._repair(call, call.func, "log1p", other))
                return

    def visit_BinaryOperation(self, operation: cst.BinaryOperation) -> None:
        """`torch.exp(x) - 1`."""
        left = operation.left
        value = self._only_argument(left, "torch.exp")
        if value is None or not isinstance(operation.operator, cst.Subtract) or not self._is_one(operation.right):
            return
        assert isinstance(left, cst.Call)
        self.report(operation, _EXP, repair=self._repair(operation, left.func, "expm1", value))

    def _only_argument(self, call: cst.CSTNode, name: str) -> cst.BaseExpression | None:
        if not isinstance(call, cst.Call) or self.names.call(call) != name or len(call.args) != 1:
            return None
        arg = call.args[0]
        return None if arg.keyword or arg.star else arg.value

    def _is_one(self, expression: cst.BaseExpression) -> bool:
        return isinstance(expression, (cst.Integer, cst.Float)) and expression.evaluated_value == 1

    def _repair(
        self, whole: cst.BaseExpression, func: cst.BaseExpression, name: str, value: cst.BaseExpression
    ) -> Repair | None:
        if not isinstance(func, cst.Attribute):
            return None
        text = f"{self.code.text_of(func.value)}.{name}({self.code.text_of(value)})"
        return Repair(f"write `torch.{name}`", replace(self.code, whole, text), Applicability.UNSAFE)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.of(DigitsLost):
            if event.better in ("log1p", "expm1"):
                yield Fault.of(event, _LOG if event.better == "log1p" else _EXP)
