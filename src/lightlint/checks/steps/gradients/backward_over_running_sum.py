from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward
from lightlint.explore.questions.queries import over_old_sum

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class BackwardOverRunningSum(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes over a sum that holds what an earlier pass has freed."""
        message = "the sum holds the losses of earlier iterations, whose graphs are gone: the second pass raises"
        for path in entry.paths:
            for event in path.of(Backward):
                if event.twice and not event.where.phase and over_old_sum(path, event):
                    yield Fault.at(event, message)
