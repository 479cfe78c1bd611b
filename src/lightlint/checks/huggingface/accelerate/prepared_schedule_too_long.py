from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Left, ScheduleStepped
from lightlint.engine.language.operators import factors_of
from lightlint.explore.questions.queries import loader_lengths
from lightlint.frameworks.deepspeed import ACCUMULATION
from lightlint.frameworks.fabric import PREPARED
from lightlint.models.data.loaders import OF_ONE_PROCESS
from lightlint.values.core import is_constant, number_of, written
from lightlint.values.training import Instance, Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value


class PreparedScheduleTooLong(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules as long as there are batches that an Accelerator steps once in several of them."""
        waiting = {call.receiver for call in entry.calls.get(".accumulate", [])}
        left = {event.where.turns[-1].loop.site for event in entry.of(Left) if event.leaves_loop and event.where.turns}
        lengths = loader_lengths(entry)
        for event in entry.of(ScheduleStepped):
            windows = _windows(event.schedule)
            by = event.schedule.attributes.get(PREPARED)
            ended = any(turn.loop.site in left for turn in event.where.turns)
            if windows is None or by not in waiting or event.args or ended or not _counts_turns(event, lengths):
                continue
            message = (
                f"the schedule's length counts each batch, and once prepared it takes a step for {windows} of them: "
                "training is over long before it is"
            )
            yield Fault(event.schedule.site or event.site, message, None, (event.site,))


def _windows(schedule: Schedule) -> int | None:
    """In how many batches an Accelerator surely steps a schedule once, where these are several."""
    by = schedule.attributes.get(PREPARED)
    if not isinstance(by, Instance) or by.escaped or by.open_arguments or schedule.escaped:
        return None
    with_optimizer = by.arguments.get("step_scheduler_with_optimizer")
    apart = with_optimizer is not None and not is_constant(with_optimizer, True)
    number = number_of(written(by.arguments.get(ACCUMULATION)))
    engine = any("plugin" in name and not is_constant(each, None) for name, each in by.arguments.items())
    return int(number) if number is not None and number > 1 and not apart and not engine else None


def _counts_turns(event: ScheduleStepped, lengths: frozenset[Hashable]) -> bool:
    """Whether the length of its schedule is the number of turns that the loops around it take, over all batches."""
    length = event.schedule.length
    if length is None or OF_ONE_PROCESS in length.traits:
        return False
    counted = _factors(length)
    turns: Counter[Hashable] = Counter()
    for turn in event.where.turns:
        turns += _factors(turn.loop.bound)
    return bool(counted) and counted == turns and any(counted[each] == 1 for each in lengths)


def _factors(number: Value | None) -> Counter[Hashable]:
    return Counter(dict((factors_of(number) if number is not None else None) or ()))
