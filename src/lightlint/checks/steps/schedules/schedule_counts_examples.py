from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LoaderMade, ScheduleMade
from lightlint.engine.language.operators import factors_of
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value
    from lightlint.values.training import Loader


class ScheduleCountsExamples(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Schedules whose length is a number of examples, where a loader gives these in batches."""
        for path in entry.paths:
            for event in path.of(ScheduleMade):
                if _counts_examples(path, event.schedule.length):
                    name = event.schedule.length_name
                    message = f"`{name}` is a number of examples, and the schedule counts batches: it never gets far"
                    yield Fault.at(event, message)


def _counts_examples(path: Path, length: Value | None) -> bool:
    """Whether a length is that of a data set, as often as there are epochs, which a loader gives in batches."""
    factors = dict((factors_of(length) if length is not None else None) or ())
    loaders = [event.loader for event in path.of(LoaderMade)]
    mine = [
        each for each in loaders if each.data is not None and ("length", getattr(each.data, "number", 0)) in factors
    ]
    divided = any(power < 0 for power in factors.values())
    return bool(mine) and not divided and all(_has_batches(each) for each in mine)


def _has_batches(loader: Loader) -> bool:
    size = loader.arguments.get("batch_size")
    return size is not None and not is_constant(size, 1, None) and not loader.open_arguments
