from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LossComputed
from lightlint.explore.queries import sure
from lightlint.finding import Applicability, Tier
from lightlint.fixes.logits import bare_logits
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


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

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Probabilities that reach a loss that takes logits."""
        for event in sure(entry, LossComputed, _is_fault):
            message = "cross entropy takes logits and is given what went through softmax, so it can never come near 0"
            yield Fault.at(event, message)


def _is_fault(event: LossComputed) -> bool:
    given = event.input
    return event.wants == "logits" and isinstance(given, Tensor) and given.role == "probabilities" and not given.escaped
