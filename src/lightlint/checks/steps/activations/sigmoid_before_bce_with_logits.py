from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LossComputed
from lightlint.explore.questions.queries import sure
from lightlint.finding import Applicability
from lightlint.fixes.repairs.logits import bare_logits
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class SigmoidBeforeBceWithLogits(Check):
    def wants_passes(self) -> bool:
        return any(each in self.facts.source.text.lower() for each in ("sigmoid", "softmax"))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Probabilities that reach a loss that takes logits."""
        for event in sure(entry, LossComputed, _is_fault):
            activation = event.input.activation if isinstance(event.input, Tensor) else None
            name = activation[0].lower() if activation is not None else "an activation"
            message = f"the loss applies sigmoid itself and is given what went through {name} before"
            yield Fault.at(event, message, *([activation[1]] if activation is not None else []))

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        applied = self.node_of(fault.also[0]) if fault.also else None
        draft = bare_logits(self.code, self.names, node, applied)
        return Repair("hand over the logits", draft, Applicability.UNSAFE)


def _is_fault(event: LossComputed) -> bool:
    given = event.input
    activated = isinstance(given, Tensor) and given.role in ("sigmoid", "probabilities") and not given.escaped
    return event.wants == "binary logits" and activated
