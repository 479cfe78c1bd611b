from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Clipped, Configured
from lightlint.explore.questions.queries import in_sight, inside

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ClipGradInTrainingStep(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Clipping in a `training_step` whose backward pass is Lightning's."""
        for path in entry.paths:
            modules = [event.module for event in path.of(Configured) if event.automatic]
            by_hand = any(each.via != "lightning" and inside(each.where, "training_step") for each in path.of(Backward))
            for event in path.of(Clipped) if modules and in_sight(modules) and not by_hand else []:
                if inside(event.where, "training_step") and event.parameters:
                    message = "clips the gradients of the batch before: Lightning's backward pass comes later"
                    yield Fault.at(event, message)
