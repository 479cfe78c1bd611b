from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import ShardsGathered
from lightlint.explore.questions.queries import on_some_ranks

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ShardedStateOnSomeRanks(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Shards brought together where a test of the rank keeps some ranks away."""
        for event in on_some_ranks(entry, ShardsGathered):
            place = event.where.behind("rank")
            gathers = (
                f"`{event.name}` gathers" if place == event.site else f"this leads to `{event.name}`, which gathers"
            )
            message = f"{gathers} the shards of all ranks, and only some of them get here"
            yield Fault(place, message, None, (event.site,))
