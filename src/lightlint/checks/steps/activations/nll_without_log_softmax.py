from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed
from lightlint.explore.questions.queries import sure
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class NllWithoutLogSoftmax(Check):
    def wants_passes(self) -> bool:
        return "softmax" in self.facts.source.text.lower()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Probabilities, and logits of a linear layer, that reach a loss that takes log-probabilities."""
        for event in sure(entry, LossComputed, lambda each: bool(_wrong(each))):
            yield Fault.at(
                event, f"the loss takes log-probabilities and is given {_wrong(event)}, so it is no likelihood"
            )


def _wrong(event: LossComputed) -> str:
    """What the loss is given in the place of log-probabilities, as far as that is sure."""
    given = event.input
    if event.function not in ("nll_loss", "NLLLoss") or not isinstance(given, Tensor) or given.escaped:
        return ""
    if given.role in ("probabilities", "sigmoid"):
        return "probabilities"
    return "logits" if given.layer == "Linear" and given.activation is None else ""
