from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import NoneUsed
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class RankZeroOnlyValueUsed(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What a function of rank zero gives, used as it is on a rank that gets None."""
        world = self.facts.world
        if world.lightning is Ranks.ONE:
            return
        tier = Tier.NOTE if world.is_untold and world.raw is Ranks.ONE else None
        for event in entry.of(NoneUsed):
            message = f"`{event.name}` gives its value on rank zero, and None on the others, where it is used too"
            yield Fault(event.call, message, tier, (event.site,))
