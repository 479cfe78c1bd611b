from __future__ import annotations

import libcst as cst

from lightlint.check import Check

_GIVEN = {"softmax": "probabilities", "sigmoid": "probabilities", "linear": "logits"}


class NllWithoutLogSoftmax(Check):
    def visit_Call(self, call: cst.Call) -> None:
        loss = self.facts.criteria.of(call)
        if loss is None or loss.name != "NLLLoss":
            return
        activation = self.facts.activations.of(loss.input)
        if activation is not None and activation.name in _GIVEN:
            self.report(
                call,
                f"the loss takes log-probabilities and is given {_GIVEN[activation.name]}, so it is no likelihood",
            )
