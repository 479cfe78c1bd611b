from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Collective
from lightlint.explore.questions.queries import may_be_alone, on_some_ranks

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_ELSEWHERE = ("fabric.", "self.log")  # told by rules of their own
_SAVING_WAITS = "2.1"  # the release that put a barrier into `Trainer.save_checkpoint`


class CollectiveInRankGuard(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Collectives that a test of the rank keeps some ranks from, and that these have none for."""
        for event in on_some_ranks(entry, Collective, self._waits_for_all):
            place = event.where.behind("rank")
            led = "this leads to " if place != event.site else ""
            message = f"{led}`{event.name}`{',' if led else ''} {'which ' if led else ''}waits for all ranks"
            yield Fault(place, f"{message}, and only some of them get here", None, (event.site,))

    def _waits_for_all(self, event: Collective) -> bool:
        if event.name == "dist.irecv":  # from one rank to another
            return False
        if event.alone or event.group is not None or may_be_alone(event.where) or event.name.startswith(_ELSEWHERE):
            return False
        return event.name != "trainer.save_checkpoint" or self.facts.lightning.may_be_at_least(_SAVING_WAITS)
