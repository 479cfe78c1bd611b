from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LoaderWorked, RandomDrawn
from lightlint.finding import Tier
from lightlint.values.core import number_of, written

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class DatasetRngSharedByWorkers(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Generators that a worker draws from as they were before it started."""
        for event in entry.of(LoaderWorked):
            sure = bool(number_of(written(event.loader.arguments.get("num_workers"))))
            for drawn in event.events:
                made = drawn.generator if isinstance(drawn, RandomDrawn) else None
                if made is None or made.site is None or made.made > event.time or made.escaped:
                    continue
                here = made.site[0] == event.site[0]
                name = f"`{made.name}`" if here else f"`{made.name}` of {Path(made.site[0]).name}"
                yield Fault(
                    made.site if here else event.site,
                    f"every worker gets a copy of this {name} in the same state: all draw the same numbers",
                    None if sure else Tier.NOTE,
                    (drawn.site,),
                )
