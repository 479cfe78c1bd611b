from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft, drop_statement


class ZeroGradInTrainingStep(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func, facts = call.func, self.facts.optimization
        if not isinstance(func, cst.Attribute) or func.attr.value != "zero_grad":
            return
        if not self.classes.is_self(func.value) and not facts.from_optimizers(func.value):
            return
        node = facts.step_class(call)
        if node is None or not facts.is_automatic(node) or facts.backwards(node):
            return
        every = self._accumulated()
        effect = f"drops what `accumulate_grad_batches={every}` gathers" if every else "repeats what Lightning does"
        self.report(
            call,
            f"`{self.code.text_of(func)}` in a step that Lightning optimizes {effect}",
            tier=Tier.WARNING if every else Tier.NOTE,
            repair=Repair("drop the call", self._draft(call), Applicability.UNSAFE),
        )

    def _accumulated(self) -> int:
        """Over how many batches a Trainer in sight adds gradients up, 0 if none does."""
        values = [each.arguments.get("accumulate_grad_batches") for each in self.facts.world.trainers]
        return max((value for value in values if isinstance(value, int) and value > 1), default=0)

    def _draft(self, call: cst.Call) -> Draft | None:
        statement = self.tree.parent(call)
        return drop_statement(self.code, statement) if isinstance(statement, cst.Expr) else None
