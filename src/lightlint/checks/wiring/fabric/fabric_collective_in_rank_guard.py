from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.explore.questions.queries import on_some_ranks
from lightlint.facts.ranks.world import Ranks
from lightlint.values.core import Unknown, is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_COLLECTIVE = {"save", "barrier", "all_reduce", "all_gather", "broadcast", "setup", "setup_module"}


class FabricCollectiveInRankGuard(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in on_some_ranks(entry, Called, self._waits_for_all):
            message = f"`{event.path}` of Fabric waits for all ranks, of which a test lets only some come here"
            yield Fault.at(event, message)

    def _waits_for_all(self, event: Called) -> bool:
        fabric = event.receiver
        if fabric is None or fabric.kind != "fabric" or event.path not in _COLLECTIVE:
            return False
        given = fabric.argument("devices", 2)
        devices = given.default if isinstance(given, Unknown) else given
        return not is_constant(devices, 1, "1") and self.facts.world.lightning is not Ranks.ONE
