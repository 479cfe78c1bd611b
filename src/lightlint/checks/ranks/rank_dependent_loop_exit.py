from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Collective, Event, Left, Looped
from lightlint.explore.queries import exchanging, loops_together
from lightlint.values.core import Site

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_ALONE = "only some ranks leave the loop here: the others wait in the next step's all-reduce"
_FLAG = "what leads out of the loop here is decided on some ranks only: the others go on and wait"
_OWN = "each rank decides by its own numbers whether it leaves the loop here: the others wait in the next step's all-reduce"


class RankDependentLoopExit(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """A loop that one rank leaves, while the other goes on to a collective or to the gradients' all-reduce."""
        for first, second in entry.pairs():
            for path, other in ((first, second), (second, first)):
                yield from _left_alone(path, other)
        together = loops_together(entry)
        for looped in entry.of(Looped):
            if looped.loop.split and looped.loop.site in together:
                yield Fault.at(looped, _FLAG)
        for path in entry.paths:
            for event in path.of(Left):
                if not event.leaves_loop or event.where.turns[-1].loop.site not in together:
                    continue
                if event.where.depends_on_unknown("on some ranks"):
                    yield Fault.at(event, _FLAG)
                elif event.where.depends_on_unknown("own data") and event.where.within("batch"):
                    yield Fault.at(event, _OWN)


def _left_alone(path: Path, other: Path) -> Iterator[Fault]:
    """Where a path leaves loops in which the other goes on to wait for it."""
    there = {event.site for event in other.of(Left)}
    told: set[Site] = set()
    for event in path.of(Left):
        if event.leaves_loop and event.site not in there:
            loop = event.where.turns[-1].loop.site
            told.update(turn.loop.site for turn in event.where.turns)
            if _goes_on(other, loop):
                yield Fault.at(event, _ALONE if event.where.depends_on("rank") else _FLAG)
    for looped in path.of(Looped):
        loop = looped.loop.site
        ended = looped.loop.kind in ("while", "count") and 0 < _turns(path, loop) < _turns(other, loop)
        if ended and loop not in told and _goes_on(other, loop):
            yield Fault.at(looped, _FLAG)


def _turns(path: Path, loop: Site) -> int:
    """How many turns of a loop a path trains in."""
    turns = (turn for each in exchanging(path) for turn in each.where.turns)
    return max((turn.number for turn in turns if turn.loop.site == loop), default=0)


def _goes_on(path: Path, loop: Site) -> bool:
    """Whether a path comes to what waits for the other ranks in a loop."""
    return any(_is_inside(each, loop) for each in (*path.of(Collective), *exchanging(path)))


def _is_inside(event: Event, loop: Site) -> bool:
    return any(turn.loop.site == loop for turn in event.where.turns)
