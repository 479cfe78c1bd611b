from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Configured, LossComputed, StepReturned
from lightlint.explore.questions.queries import in_sight, inside, sure
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class TrainingStepDropsLoss(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Steps that compute a loss and give nothing, on each path, where Lightning is to train with it."""
        by_hand = any(event.via != "lightning" for event in entry.of(Backward))
        losses = any(inside(event.where, "training_step") for event in entry.of(LossComputed))
        trained = [event.module for event in entry.of(Configured) if event.automatic and event.optimizers]
        if by_hand or not losses or not trained:
            return
        # each `return` is another place, and the end of the function one more
        giving = {event.module.cls for event in entry.of(StepReturned) if not is_constant(event.result, None)}
        for event in sure(entry, StepReturned, lambda each: is_constant(each.result, None) and not each.written):
            if event.module.cls in giving:
                continue
            if in_sight([event.module]) and not self.facts.optimization.is_refined(event.module.name):
                message = "`training_step` computes a loss and never returns it: Lightning skips every batch, no weight changes"
                yield Fault.at(event, message)
