from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Collective, Left, ScheduleStepped
from lightlint.models.ranks.groups import reduced_at

if TYPE_CHECKING:
    from lightlint.engine.frames import Condition
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Traits, Value


class ReduceResultOnAllRanks(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Sums that `reduce` leaves on one rank, and with which all ranks decide something."""
        for path in entry.paths:
            reduced = [e for e in path.of(Collective) if e.name == "dist.reduce" and not e.where.depends_on("rank")]
            stepped = {e: _of_one_rank(e.args) for e in path.of(ScheduleStepped)} if reduced else {}
            left = {e: _of_one_rank(_own_tests(e)) for e in path.of(Left) if e.word != "continue"} if reduced else {}
            for event, traits in (*stepped.items(), *left.items()):
                before = [each for each in reduced if reduced_at(each.time) in traits]
                if before and not event.where.depends_on("rank"):
                    what = "a scheduler steps with it" if event in stepped else "it decides who goes on"
                    yield Fault.at(before[-1], f"the sum is on one rank only, and on all of them {what}", event.site)


def _of_one_rank(values: Iterable[Value | Condition]) -> Traits:
    """The traits of those of some values that one rank alone has."""
    return frozenset(trait for each in values if "on one rank" in each.traits for trait in each.traits)


def _own_tests(event: Left) -> list[Condition]:
    """The tests in the function itself that let it leave."""
    return [each for each in event.where.conditions if each.depth == len(event.where.calls)]
