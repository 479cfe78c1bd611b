from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.loading import LOADER
from lightlint.facts.one_row import OneRow


class LastBatchOfOne(Check):
    def visit_Call(self, call: cst.Call) -> None:
        rows = OneRow(self.facts)
        left = rows.left_over(call) if self.names.call(call) == LOADER else None
        if left is not None and any(self._trains(rows, loop) for loop in rows.loops_over(call)):
            self.report(
                call,
                f"{left[0]} rows in batches of {left[1]} leave one for the last, on which `BatchNorm1d` raises ValueError",
            )

    def _trains(self, rows: OneRow, loop: cst.For) -> bool:
        """Whether a loop surely gives the last batch to a model that normalises over it, in training."""
        if not self.facts.steps.runs(loop.body, self.loops.is_backward) or not self._is_in_train_mode(loop):
            return False
        return any(
            call.args
            and rows.is_first(call.args[0].value, loop)
            and not self.facts.gradients.may_be_off(call)
            and not any(self.tree.contains(loop, test) for test, _ in self.facts.conditions(call))
            and not any(isinstance(each, cst.Try) for each in self.tree.ancestors(call))
            and rows.normalises(call.func)
            for call in self.tree.own(loop.body, cst.Call)
        )

    def _is_in_train_mode(self, loop: cst.For) -> bool:
        """Whether nothing beside a loop leaves the training mode, or each epoch goes back to it before."""
        calls = self.tree.own(self.tree.owner(loop), cst.Call)
        left = [each for each in calls if self.names.method(each) == "eval" or self._says_no(each)]
        around = self.tree.loops(loop)
        again = [each for each in calls if self.names.method(each) == "train" and not self._says_no(each)]
        return not left or any(
            self.tree.loops(each)[:1] == around[:1] and self.tree.order(each) < self.tree.order(loop) for each in again
        )

    def _says_no(self, call: cst.Call) -> bool:
        given = call.args[0].value if self.names.method(call) == "train" and call.args else None
        return given is not None and self.names.constant(given) is not True
