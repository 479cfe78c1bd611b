from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Spread
from lightlint.fixes.edits import replace, wrap
from lightlint.models.tensors import PREDICTED, forms

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_COLUMN_FIRST = "compares a column with a row: every prediction with every target of the batch"
_ROW_FIRST = "compares a row with a column: every prediction with every target of the batch"


class KeepdimBroadcast(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Comparisons of a column with a row."""
        for event in entry.of(Spread):
            if event.operation in ("==", "!="):
                predicted = event.left if _is_prediction_left(event) else event.right
                yield Fault.at(event, _COLUMN_FIRST if predicted.form == forms.COLUMN else _ROW_FIRST)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        sides = self._sides(node)
        met = [event for _, _, event in self.happened(node, Spread)]
        if sides is None or not met:
            return None
        predicted, target = sides if _is_prediction_left(met[0]) else sides[::-1]
        if fault.message == _COLUMN_FIRST:
            shaped = wrap(self.code, target, "", f".view_as({self.code.text_of(predicted)})")
            return Repair("give the target the shape of the prediction", shaped)
        row = self._row_of(target)
        if row is not None:
            return Repair("leave the target a row", replace(self.code, target, self.code.text_of(row)))
        squeezed = wrap(self.code, target, "", ".squeeze(1)")
        return Repair("make the target a row", squeezed) if isinstance(target, cst.Name) else None

    def _sides(self, node: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
        """What is compared: `a == b`, `torch.eq(a, b)`, `a.eq(b)`."""
        match node:
            case cst.Comparison(comparisons=[only]):
                return node.left, only.comparator
            case cst.Call(args=[first, second]):
                return first.value, second.value
            case cst.Call(func=cst.Attribute(value=left), args=[only]):
                return left, only.value
        return None

    def _row_of(self, target: cst.BaseExpression) -> cst.BaseExpression | None:
        """The row of which a column was made in the place: `labels` of `labels.view(-1, 1)`."""
        shapes = {"unsqueeze", "view", "reshape"}
        made = isinstance(target, cst.Call) and isinstance(target.func, cst.Attribute)
        if not made or self.names.method(target) not in shapes or not isinstance(target, cst.Call):
            return None
        return target.func.value if isinstance(target.func, cst.Attribute) else None


def _is_prediction_left(event: Spread) -> bool:
    """Whether parameters had a part in the first of two, or at least more than a batch has: it is held against a target."""
    return bool(event.left.traits & PREDICTED) or not event.right.traits & PREDICTED
