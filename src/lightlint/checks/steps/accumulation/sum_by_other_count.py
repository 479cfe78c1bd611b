from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import SumDivided

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_MESSAGES = {
    "epochs": "what one epoch's batches add up is divided by the number of epochs: divide by the number of batches",
    "numbers": "what the batches add up is divided by the sum of their numbers, which counts none of them: count with `+= 1`",
}


class SumByOtherCount(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Sums over batches that are divided by what counts something else."""
        for event in entry.of(SumDivided):
            if isinstance(event.count, str) and event.count in _MESSAGES:
                yield Fault.at(event, _MESSAGES[event.count])
