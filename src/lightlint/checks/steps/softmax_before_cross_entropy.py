from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability, Tier
from lightlint.fixes.logits import bare_logits


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
                repair=Repair(
                    "hand over the logits",
                    bare_logits(self.code, self.names, loss.input, activation.node),
                    Applicability.UNSAFE,
                ),
            )
        else:
            self.report(call, "cross entropy applies log_softmax again, to the same values and in vain", tier=Tier.NOTE)
