from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Configured, ScheduleStepped
from lightlint.engine.language.operators import factors_of, is_number_key
from lightlint.explore.questions.queries import counts_batches
from lightlint.models.numbers.sums import summands
from lightlint.values.core import Class, Constant, Function, Sequence, Unknown, Value, is_constant, number_of, written
from lightlint.values.training import Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.training import Instance

_EPOCHS = re.compile(r"(?:^|_)epochs$", re.IGNORECASE)
_WHOLE = frozenset(["CosineAnnealingLR", "PolynomialLR", "OneCycleLR", "LinearLR"])
"""Schedules that end where their length does."""
_FEWER_BATCHES = ("overfit_batches", "limit_train_batches")


class EpochScheduleOnStepInterval(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules that last as long as there are epochs, or a part of them, and that the Trainer steps with each batch."""
        stepped = {event.schedule for event in entry.of(ScheduleStepped) if not event.implicit}
        for event in entry.of(Configured):
            module = event.module.cls
            own = not isinstance(module, Class) or isinstance(module.find("lr_scheduler_step"), Function)
            few = any(each in event.trainer.arguments for each in _FEWER_BATCHES)
            for each in event.schedules if event.automatic and not own and not few else ():
                config = each.config
                if each.interval != "step" or config is None or config.more or each.schedule in stepped:
                    continue
                frequent = is_constant(config.items.get("frequency", Constant(1)), 1)
                place = config.places().get("interval")
                if frequent and place is not None and _lasts_epochs(each.schedule, event.trainer):
                    message = f"`{each.schedule.name}` counts epochs, the Trainer steps it with every batch: it is through after as many batches"
                    also = (each.schedule.site,) if each.schedule.site is not None else ()
                    yield Fault(place, message, None, also)


def _lasts_epochs(schedule: Schedule, trainer: Instance) -> bool:
    """Whether a schedule is as long as a Trainer's run, or is told so by numbers that are all of epochs."""
    epochs = trainer.arguments.get("max_epochs") or Unknown(("trainer", "max_epochs"), plain=True)
    lengths = [*_lengths(schedule)]
    terms = [term for each in lengths for term in summands(each)]
    known = [each for each in terms if not isinstance(each, Constant)]
    if any(counts_batches(each) for each in lengths) or not all(isinstance(each, Unknown) for each in known):
        return False
    if known and all(_names_epochs(each) or each.key == epochs.key for each in known):
        return True
    total, number = _total(schedule), number_of(written(epochs))
    return not known and number is not None and number > 1 and total == number


def _parts(schedule: Schedule) -> list[Schedule]:
    """The schedules that come one after the other in one, by themselves the one."""
    held = schedule.argument("schedulers", 1 if schedule.name == "SequentialLR" else 0)
    inner = held.items if isinstance(held, Sequence) and not held.more else []
    return [each for each in inner if isinstance(each, Schedule)] or [schedule]


def _lengths(schedule: Schedule) -> Iterator[Value]:
    for each in _parts(schedule):
        if each.length is not None and each.name in _WHOLE:
            yield each.length
    yield from _milestones(schedule)


def _milestones(schedule: Schedule) -> list[Value]:
    held = schedule.argument("milestones", 2) if schedule.name == "SequentialLR" else None
    return held.items if isinstance(held, Sequence) and not held.more else []


def _total(schedule: Schedule) -> float | None:
    """How many steps a schedule takes, where that is written down."""
    last = _parts(schedule)[-1]
    start = [number_of(written(each)) for each in _milestones(schedule)[-1:]] or [0]
    end = number_of(written(last.length)) if last.name in _WHOLE and last.length is not None else None
    return start[0] + end if start[0] is not None and end is not None else None


def _names_epochs(value: Value) -> bool:
    """Whether a number is called a number of epochs, by who sets it, or is a share of one."""
    factors = [(key, power) for key, power in factors_of(value) or () if not is_number_key(key)]
    return len(factors) == 1 and factors[0][1] == 1 and _ends_in_epochs(factors[0][0])


def _ends_in_epochs(key: Hashable) -> bool:
    last = key[-1] if isinstance(key, tuple) and key else None
    return isinstance(last, str) and _EPOCHS.search(last) is not None
