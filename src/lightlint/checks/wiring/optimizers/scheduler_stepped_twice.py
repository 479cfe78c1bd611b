from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured, ScheduleStepped
from lightlint.values.core import Class, Function

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Module


class SchedulerSteppedTwice(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for path in entry.paths:
            handed = [
                each.schedule
                for event in path.of(Configured)
                if event.automatic and not _has(event.module, "lr_scheduler_step")
                for each in event.schedules
            ]
            for event in path.of(ScheduleStepped):
                if (
                    not event.implicit
                    and event.where.phase == "train"
                    and event.where.hook
                    and event.schedule in handed
                ):
                    yield Fault.at(
                        event, "the Trainer steps this scheduler too: it goes through its schedule twice as fast"
                    )


def _has(module: Module, method: str) -> bool:
    return isinstance(module.cls, Class) and isinstance(module.cls.find(method), Function)
