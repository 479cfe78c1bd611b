from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LossComputed
from lightlint.explore.queries import sure
from lightlint.facts.criteria import Criterion
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_FLOATING = {"BCELoss", "BCEWithLogitsLoss", "HuberLoss"}
_CLASSES = {"CrossEntropyLoss", "NLLLoss"}


class LossTargetMismatch(Check):
    asks_passes = True

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

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Targets of a dtype that the loss refuses."""
        for event in sure(entry, LossComputed, lambda each: bool(_refused(each))):
            yield Fault.at(event, f"`{event.function}` takes {_refused(event)} and raises")


_FLOAT = frozenset(
    [
        "BCELoss",
        "BCEWithLogitsLoss",
        "HuberLoss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "huber_loss",
    ]
)


def _refused(event: LossComputed) -> str:
    """What a loss takes as its target in the place of a dtype that it refuses; "" for one that it takes."""
    function, target = event.function, event.target
    dtype = target.dtype if isinstance(target, Tensor) and not target.escaped else None
    if dtype is None:
        return ""
    if function in _FLOAT:
        return "a float target, is given integers" if dtype in ("int64", "int32", "int16", "one-hot") else ""
    if function not in ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"):
        return ""
    if dtype in ("int32", "int16"):
        return f"class indices as int64, is given {dtype}"
    return "class probabilities as floats, is given one-hot rows of integers" if dtype == "one-hot" else ""
