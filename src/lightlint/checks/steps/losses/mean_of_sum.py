from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, NumberAveraged

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class MeanOfSum(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Means over a dimension of sums that left none, in what is trained for."""
        message = "this is the mean of one number: the sum before it went over all dimensions, that of the batch, too: tell it which ones"
        for path in entry.paths:
            trained = {each for event in path.of(Backward) for each in event.parameters}
            for event in path.of(NumberAveraged):
                if event.result.parameters & trained and event.added.site is not None:
                    yield Fault(event.added.site, message, None, (event.site,))
