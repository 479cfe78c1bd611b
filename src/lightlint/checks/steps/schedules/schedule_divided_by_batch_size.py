from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LoaderMade, ScheduleMade
from lightlint.engine.language.operators import factors_of, is_number_key

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value
    from lightlint.values.training import Loader

_BY_SIZE = re.compile(r"/\s*\(?[\w.\[\]'\"]*(?:batch|\bbsz?\b)", re.IGNORECASE)
_MESSAGE = "divides a number of batches by their size: the schedule ends that many times too early"


class ScheduleDividedByBatchSize(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Lengths of schedules that are a number of batches over the size of these batches."""
        for path in entry.paths:
            loaders = [event.loader for event in path.of(LoaderMade)]
            for event in path.of(ScheduleMade):
                for length in (event.schedule.length, *event.schedule.closed_over):
                    sizes = [size for each in loaders if (size := _divided(length, each)) is not None]
                    if any(not is_number_key(size) or self._names_size(event) for size in sizes):
                        given = event.where.calls and length is not event.schedule.length  # to what makes the schedule
                        yield Fault(event.where.calls[-1].site if given else event.site, _MESSAGE)

    def _names_size(self, event: ScheduleMade) -> bool:
        """Whether something is divided by what is called a batch size: the same number may be that of another thing."""
        files = {event.site[0], *(each.site[0] for each in event.where.calls)}
        texts = (self.facts.project.text(Path(file)) for file in files)
        return any(map(_BY_SIZE.search, (self.facts.source.text, *texts)))


def _divided(length: Value | None, loader: Loader) -> Hashable | None:
    """The size of a loader's batches, by its key, where a length is the number of them divided by it."""
    factors, size = dict(_factors(length)), _factors(loader.arguments.get("batch_size"))
    keys = [("batch size", loader.number), *(key for key, power in size if power > 0)]
    counts = factors.get(("length", loader.number), 0) > 0
    return next((key for key in keys if counts and factors.get(key, 0) < 0), None)


def _factors(value: Value | None) -> tuple[tuple[Hashable, int], ...]:
    return (factors_of(value) if value is not None else None) or ()
