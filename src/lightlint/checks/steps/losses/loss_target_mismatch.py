from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LossComputed
from lightlint.explore.questions.queries import sure
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LossTargetMismatch(Check):
    asks_passes = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Targets of a dtype that the loss refuses."""
        for event in sure(entry, LossComputed, lambda each: bool(_refused(each))):
            yield Fault.at(event, f"`{event.function}` takes {_refused(event)} and raises")

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """A conversion of the target, where one would do."""
        method = next((method for what, method in _CONVERSIONS.items() if what in fault.message), None)
        given = self.names.argument(node, "target", 1) if isinstance(node, cst.Call) else None
        target = given.value if given is not None and not given.star else None
        if method is None or not isinstance(target, (cst.Name, cst.Call, cst.Attribute, cst.Subscript)):
            return None
        draft = replace(self.code, target, f"{self.code.text_of(target)}.{method}()")
        return Repair(f"convert the target with `{method}()`", draft, Applicability.SAFE)


_PROBABILITIES = "class probabilities as floats, is given one-hot rows of integers"
_CONVERSIONS = {"float target": "float", "as floats": "float", "as int64": "long"}


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
    if dtype != "one-hot":
        return ""
    return "class indices, is given one-hot rows" if "nll" in function.lower() else _PROBABILITIES
