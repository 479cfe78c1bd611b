from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class BackwardUnderAutocast(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Backward passes that run while autocast is open."""
        for event in entry.of(Backward):
            if event.where.autocast is not None and event.via in ("backward", "unknown"):
                yield Fault.at(event, "the backward pass runs under autocast, which chooses its dtypes without it")
