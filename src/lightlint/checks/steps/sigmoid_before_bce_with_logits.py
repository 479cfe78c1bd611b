from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability
from lightlint.fixes.logits import bare_logits


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
                repair=Repair(
                    "hand over the logits",
                    bare_logits(self.code, self.names, loss.input, activation.node),
                    Applicability.UNSAFE,
                ),
            )
