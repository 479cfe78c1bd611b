from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import ReadEarly

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class AsyncCollectiveNotWaited(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Collectives in the background whose result is asked for before anybody has waited for it."""
        for event in entry.of(ReadEarly):
            name = event.collective.name.rpartition(".")[2]
            message = f"what this `{name}` gives is used in line {event.site[1]} before it is waited for"
            yield Fault(event.collective.site, message, None, (event.site,), event.collective.where.places[1:])
