from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, replace


class SigmoidBeforeBceWithLogits(Check):
    def visit_Call(self, call: cst.Call) -> None:
        loss = self.facts.criteria.of(call)
        if loss is None or loss.name != "BCEWithLogitsLoss":
            return
        activation = self.facts.activations.of(loss.input)
        if activation is not None and activation.name in {"sigmoid", "softmax"}:
            self.report(
                call,
                f"the loss applies sigmoid itself and is given what went through {activation.name} before",
                repair=Repair("hand over the logits", self._draft(loss.input, activation.node), Applicability.UNSAFE),
            )

    def _draft(self, given: cst.BaseExpression, applied: cst.CSTNode) -> Draft | None:
        """The logits in the place of a sigmoid that stands in the call itself."""
        if applied is not given or not isinstance(applied, cst.Call):
            return None
        if (self.names.of(applied.func) or "").startswith("torch."):
            logits = self.names.argument(applied, "input", 0)
            return replace(self.code, given, self.code.text_of(logits.value)) if logits and not logits.star else None
        if isinstance(applied.func, cst.Attribute):
            return replace(self.code, given, self.code.text_of(applied.func.value))
        return None
