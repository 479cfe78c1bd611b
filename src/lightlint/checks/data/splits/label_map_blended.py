from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Blended, ClassesBlended, Event, LoaderWorked, SampleMade

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LabelMapBlended(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Label maps that are resized by means of neighbours, and made whole numbers after that."""
        message = "this blends the classes of neighbours: between 0 and 4 lie 1, 2 and 3, which are other classes. Take the nearest one"
        told: dict[object, Event] = {}
        for path in entry.paths:
            runs = [path.events, *(work.events for work in path.of(LoaderWorked))]
            runs += (made.events for made in path.of(SampleMade))
            for events in runs:
                blended: Blended | None = None
                for event in events:
                    if isinstance(event, Blended):
                        blended = event
                    elif isinstance(event, ClassesBlended) and blended is not None:
                        told.setdefault(blended.site, blended)
        yield from (Fault.at(event, message) for event in told.values())
