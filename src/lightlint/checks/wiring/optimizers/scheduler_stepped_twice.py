from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured, ScheduleStepped
from lightlint.explore.questions.queries import in_batch
from lightlint.finding import Tier
from lightlint.values.core import Class, Function

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Module, Schedule


_TOO = "the Trainer steps this scheduler too"


class SchedulerSteppedTwice(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        raises = self.facts.lightning.may_be_at_least("0.10")
        for path in entry.paths:
            handed = {
                each.schedule: each.interval
                for event in path.of(Configured)
                if event.automatic and not _has(event.module, "lr_scheduler_step")
                for each in event.schedules
                if not (raises and each.follows_nothing)  # which is told as LL624
            }
            for event in path.of(ScheduleStepped):
                by_hand = not event.implicit and event.where.phase == "train" and event.where.hook
                if by_hand and event.schedule in handed:
                    yield _fault(event, handed[event.schedule])


def _fault(event: ScheduleStepped, interval: str | None) -> Fault:
    """Two steps at the same time run through the schedule twice as fast; one beside those of all batches does not."""
    own = "step" if in_batch(event.where) else "epoch"
    match interval, own:
        case "epoch" | "step", _ if interval == own:
            return Fault.at(event, f"{_TOO}: it goes through its schedule twice as fast")
        case "epoch", "step":  # one of many, where the schedule has no end to run over
            tier = Tier.WARNING if _ends(event.schedule) else Tier.NOTE
            return Fault.at(event, f"{_TOO}, once more after each epoch", tier=tier)
        case "step", "epoch":
            return Fault.at(event, f"{_TOO}, after each batch", tier=Tier.WARNING)
    return Fault.at(event, _TOO)


def _ends(schedule: Schedule) -> bool:
    """Whether a schedule raises when its steps are used up."""
    return any(each.endswith(".OneCycleLR") for each in schedule.libraries())


def _has(module: Module, method: str) -> bool:
    return isinstance(module.cls, Class) and isinstance(module.cls.find(method), Function)
