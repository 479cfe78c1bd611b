from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Collective, Left, ScheduleStepped

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ReduceResultOnAllRanks(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Sums that `reduce` leaves on one rank, and with which all ranks decide something."""
        for path in entry.paths:
            reduced = [e for e in path.of(Collective) if e.name == "dist.reduce" and not e.where.depends_on("rank")]
            stepped = [e for e in path.of(ScheduleStepped) if any("on one rank" in each.traits for each in e.args)]
            left = [e for e in path.of(Left) if e.word != "continue" and _is_decided_here(e)]
            for event in (*stepped, *left) if reduced else ():
                before = [each for each in reduced if each.time < event.time]
                if before and not event.where.depends_on("rank"):
                    what = "a scheduler steps with it" if event in stepped else "it decides who goes on"
                    yield Fault.at(before[-1], f"the sum is on one rank only, and on all of them {what}", event.site)


def _is_decided_here(event: Left) -> bool:
    """Whether a test in the function itself on the sum of one rank lets it leave."""
    tests = [each for each in event.where.conditions if each.depth == len(event.where.calls)]
    return any("on one rank" in each.traits for each in tests)
