from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed
from lightlint.explore.queries import sure
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

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

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Probabilities that reach a loss that takes log-probabilities."""
        for event in sure(entry, LossComputed, _is_fault):
            yield Fault.at(event, "the loss takes log-probabilities and is given probabilities, so it is no likelihood")


def _is_fault(event: LossComputed) -> bool:
    given = event.input
    plain = isinstance(given, Tensor) and given.role == "probabilities" and not given.escaped
    return event.wants == "log-probabilities" and event.function in ("nll_loss", "NLLLoss") and plain
