from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LossComputed
from lightlint.explore.queries import sure
from lightlint.finding import Applicability
from lightlint.fixes.logits import bare_logits
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


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

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Probabilities that reach a loss that takes logits."""
        for event in sure(entry, LossComputed, _is_fault):
            activation = event.input.activation if isinstance(event.input, Tensor) else None
            name = activation[0].lower() if activation is not None else "an activation"
            yield Fault.at(event, f"the loss applies sigmoid itself and is given what went through {name} before")


def _is_fault(event: LossComputed) -> bool:
    given = event.input
    activated = isinstance(given, Tensor) and given.role in ("sigmoid", "probabilities") and not given.escaped
    return event.wants == "binary logits" and activated
