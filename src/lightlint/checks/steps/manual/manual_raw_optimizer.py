from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured, Stepped
from lightlint.explore.questions.queries import in_sight, inside

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ManualRawOptimizer(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Steps past Lightning's counter, in a module that optimizes by hand."""
        for path in entry.paths:
            given = {each for event in path.of(Configured) if event.automatic is False for each in event.optimizers}
            counted = any(event.via == "lightning optimizer" for event in path.of(Stepped))
            for event in path.of(Stepped) if not counted else []:
                bare = event.optimizer in given and event.via == "direct" and in_sight([event.optimizer])
                if bare and inside(event.where, "training_step"):
                    message = "Lightning does not see a step of the bare optimizer: `trainer.global_step` stays 0"
                    yield Fault.at(event, message)
