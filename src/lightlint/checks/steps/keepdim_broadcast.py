from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Spread
from lightlint.facts.bindings import Kind
from lightlint.fixes.edits import replace, wrap

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_COMPARING = {"eq", "ne"}


class KeepdimBroadcast(Check):
    def visit_Comparison(self, node: cst.Comparison) -> None:
        if len(node.comparisons) == 1 and isinstance(node.comparisons[0].operator, (cst.Equal, cst.NotEqual)):
            self._judge(node, node.left, node.comparisons[0].comparator)

    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if self.names.of(func) in {"torch.eq", "torch.ne"} and len(call.args) == 2:
            self._judge(call, call.args[0].value, call.args[1].value)
        elif isinstance(func, cst.Attribute) and func.attr.value in _COMPARING and len(call.args) == 1:
            self._judge(call, func.value, call.args[0].value)

    def _judge(self, node: cst.CSTNode, left: cst.BaseExpression, right: cst.BaseExpression) -> None:
        for prediction, target in ((left, right), (right, left)):
            if self._keeps_dim(prediction, 0) and self.facts.criteria.indices.is_row(target):
                self.report(
                    node,
                    "compares a column with a row: every prediction with every target of the batch",
                    repair=Repair(
                        "give the target the shape of the prediction",
                        wrap(self.code, target, "", f".view_as({self.code.text_of(prediction)})"),
                    ),
                )
                return
            repair = self._to_row(target) if self._is_row(prediction, 0) else None
            if repair is not None:
                self.report(
                    node, "compares a row with a column: every prediction with every target of the batch", repair=repair
                )
                return

    def _is_row(self, expression: cst.BaseExpression, depth: int) -> bool:
        """Whether a value surely is what `argmax` or `max` gives over dimension 1, without it."""
        match expression:
            case cst.Name() if depth < 4:
                found = self.facts.reaching.bindings(expression)
                return bool(found) and all(
                    each.kind is Kind.ASSIGN
                    and each.value is not None
                    and (
                        self._drops_dim(each.value, {"max"})
                        if each.path == (1,)
                        else not each.path and self._is_row(each.value, depth + 1)
                    )
                    for each in found
                )
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                return self.names.constant(index) == 1 and self._drops_dim(expression.value, {"max"})
            case cst.Call():
                return self._drops_dim(expression, {"argmax"})
        return False

    def _drops_dim(self, expression: cst.BaseExpression, methods: set[str]) -> bool:
        if not isinstance(expression, cst.Call) or self.names.method(expression) not in methods:
            return False
        offset = 1 if (self.names.of(expression.func) or "").startswith("torch.") else 0
        keep = self.names.argument(expression, "keepdim", 1 + offset)
        dim = self.names.argument(expression, "dim", offset)
        return keep is None and dim is not None and self.names.constant(dim.value) == 1

    def _to_row(self, target: cst.BaseExpression) -> Repair | None:
        """How to make a row of a column of class indices; None for what is not surely such a column."""
        indices = self.facts.criteria.indices
        row = indices.made_column_of(target)
        if row is not None:
            return (
                Repair("leave the target a row", replace(self.code, target, self.code.text_of(row)))
                if indices.is_row(row)
                else None
            )
        if isinstance(target, cst.Name) and indices.is_column(target):
            return Repair("make the target a row", wrap(self.code, target, "", ".squeeze(1)"))
        return None

    def _keeps_dim(self, expression: cst.BaseExpression, depth: int) -> bool:
        """Whether a value surely is what `argmax` or `max` gives with `keepdim=True`, over dimension 1 or -1."""
        match expression:
            case cst.Name() if depth < 4:
                found = self.facts.reaching.bindings(expression)
                return bool(found) and all(
                    each.kind is Kind.ASSIGN and each.value is not None and self._binds(each.value, each.path, depth)
                    for each in found
                )
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                return self.names.constant(index) == 1 and self._reduces(expression.value, {"max", "topk"})
            case cst.Attribute(attr=cst.Name(value="indices")):
                return self._reduces(expression.value, {"max"})
            case cst.Call():
                return self._reduces(expression, {"argmax"})
        return False

    def _binds(self, value: cst.BaseExpression, path: tuple[int, ...], depth: int) -> bool:
        return self._reduces(value, {"max", "topk"}) if path == (1,) else not path and self._keeps_dim(value, depth + 1)

    def _reduces(self, expression: cst.BaseExpression, methods: set[str]) -> bool:
        if not isinstance(expression, cst.Call) or self.names.method(expression) not in methods:
            return False
        offset = 1 if (self.names.of(expression.func) or "").startswith("torch.") else 0
        if self.names.method(expression) == "topk":
            count = self.names.argument(expression, "k", offset)
            along = self.names.argument(expression, "dim", 1 + offset)
            last = along is None or self.names.constant(along.value) in (1, -1)
            return last and count is not None and self.names.constant(count.value) == 1
        keep = self.names.argument(expression, "keepdim", 1 + offset)
        dim = self.names.argument(expression, "dim", offset)
        if keep is None or dim is None or self.names.constant(keep.value) is not True:
            return False
        return self.names.constant(dim.value) in (1, -1)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Comparisons of a column with a row."""
        for event in entry.of(Spread):
            if event.operation == "==":
                message = "compares a column with a row: every prediction with every target of the batch"
                yield Fault.at(event, message)
