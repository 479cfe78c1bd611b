from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Configured, Stepped
from lightlint.explore.questions.queries import in_sight, inside

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class OptimizerStepInAutomatic(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Steps in `training_step` of optimizers that Lightning steps, with no backward pass of the step's own."""
        for path in entry.paths:
            given = {each for event in path.of(Configured) if event.automatic for each in event.optimizers}
            by_hand = any(each.via != "lightning" and inside(each.where, "training_step") for each in path.of(Backward))
            for event in path.of(Stepped) if not by_hand else []:
                of_lightning = event.optimizer in given and event.via != "lightning" and in_sight([event.optimizer])
                if of_lightning and inside(event.where, "training_step"):
                    message = "a second step per batch, with the gradients of the batch before: Lightning steps here by itself"
                    yield Fault.at(event, message)
