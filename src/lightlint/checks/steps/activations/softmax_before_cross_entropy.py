from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LossComputed
from lightlint.explore.questions.queries import sure
from lightlint.finding import Applicability, Tier
from lightlint.fixes.repairs.logits import bare_logits
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class SoftmaxBeforeCrossEntropy(Check):
    def wants_passes(self) -> bool:
        return "softmax" in self.facts.source.text.lower()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Probabilities, and log-probabilities in vain, that reach a loss that takes logits."""
        message = "cross entropy takes logits and is given what went through softmax, so it can never come near 0"
        for event in sure(entry, LossComputed, lambda each: _given(each, "probabilities")):
            activation = event.input.activation if isinstance(event.input, Tensor) else None
            yield Fault.at(event, message, *([activation[1]] if activation is not None else []))
        in_vain = "cross entropy applies log_softmax again, to the same values and in vain"
        for event in sure(entry, LossComputed, lambda each: _given(each, "log-probabilities")):
            yield Fault.at(event, in_vain, tier=Tier.NOTE)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        applied = self.node_of(fault.also[0]) if fault.also else None
        draft = bare_logits(self.code, self.names, node, applied)
        return Repair("hand over the logits", draft, Applicability.UNSAFE)


def _given(event: LossComputed, role: str) -> bool:
    given = event.input
    return event.wants == "logits" and isinstance(given, Tensor) and given.role == role and not given.escaped
