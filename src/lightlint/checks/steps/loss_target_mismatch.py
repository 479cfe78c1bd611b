from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.criteria import Criterion
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace

_FLOATING = {"BCELoss", "BCEWithLogitsLoss", "HuberLoss"}
_CLASSES = {"CrossEntropyLoss", "NLLLoss"}


class LossTargetMismatch(Check):
    def visit_Call(self, call: cst.Call) -> None:
        loss = self.facts.criteria.of(call)
        if loss is None or loss.target is None or loss.name not in _FLOATING | _CLASSES:
            return
        fault = self._fault(loss, self.facts.shapes.integers(loss.target))
        if fault is not None:
            what, method = fault
            self.report(call, f"`{loss.name}` {what} and raises", repair=self._repair(loss.target, method))

    def _fault(self, loss: Criterion, dtype: str | None) -> tuple[str, str] | None:
        """What is wrong with a target, and the method that would put it right."""
        if loss.name in _FLOATING:
            return ("takes a float target, is given integers", "float") if dtype else None
        if dtype == "int32":
            return "takes class indices as int64, is given int32", "long"
        if dtype == "one-hot":
            if loss.name == "NLLLoss":
                return "takes class indices, is given one-hot rows", ""
            return "takes class probabilities as floats, is given one-hot rows of integers", "float"
        return None

    def _repair(self, target: cst.BaseExpression, method: str) -> Repair | None:
        if not method or not isinstance(target, (cst.Name, cst.Call, cst.Attribute, cst.Subscript)):
            return None
        draft = replace(self.code, target, f"{self.code.text_of(target)}.{method}()")
        return Repair(f"convert the target with `{method}()`", draft, Applicability.SAFE)
