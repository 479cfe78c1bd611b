from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft, replace


class SoftmaxBeforeCrossEntropy(Check):
    def visit_Call(self, call: cst.Call) -> None:
        loss = self.facts.criteria.of(call)
        if loss is None or loss.name != "CrossEntropyLoss":
            return
        activation = self.facts.activations.of(loss.input)
        if activation is None or activation.name not in {"softmax", "log_softmax"}:
            return
        if activation.name == "softmax":
            self.report(
                call,
                "cross entropy takes logits and is given what went through softmax, so it can never come near 0",
                repair=Repair("hand over the logits", self._draft(loss.input, activation.node), Applicability.UNSAFE),
            )
        else:
            self.report(call, "cross entropy applies log_softmax again, to the same values and in vain", tier=Tier.NOTE)

    def _draft(self, given: cst.BaseExpression, applied: cst.CSTNode) -> Draft | None:
        """The logits in the place of a softmax that stands in the call itself."""
        if applied is not given or not isinstance(applied, cst.Call):
            return None
        if (self.names.of(applied.func) or "").startswith("torch."):
            logits = self.names.argument(applied, "input", 0)
            return replace(self.code, given, self.code.text_of(logits.value)) if logits and not logits.star else None
        if isinstance(applied.func, cst.Attribute):
            return replace(self.code, given, self.code.text_of(applied.func.value))
        return None
