from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LoaderMade, ScheduleMade
from lightlint.engine.language.operators import factors_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_MESSAGE = "divides a number of batches by their size: the schedule ends that many times too early"


class ScheduleDividedByBatchSize(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Lengths of schedules that are a number of batches over the size of these batches."""
        for path in entry.paths:
            loaders = [event.loader for event in path.of(LoaderMade)]
            for event in path.of(ScheduleMade):
                for length in (event.schedule.length, *event.schedule.closed_over):
                    factors = dict(_factors(length))
                    for loader in loaders:
                        given_size = _factors(loader.arguments.get("batch_size"))
                        keys = {("batch size", loader.number), *(key for key, power in given_size if power > 0)}
                        counts = factors.get(("length", loader.number), 0) > 0
                        if counts and any(factors.get(key, 0) < 0 for key in keys):
                            given = (
                                event.where.calls and length is not event.schedule.length
                            )  # to what makes the schedule
                            yield Fault(event.where.calls[-1].site if given else event.site, _MESSAGE)


def _factors(value: Value | None) -> tuple[tuple[Hashable, int], ...]:
    return (factors_of(value) if value is not None else None) or ()
