from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Collective, Event, Left, Looped
from lightlint.explore.questions.queries import exchanging, loops_together, on_some_ranks, speaks_of
from lightlint.facts.ranks.world import Ranks
from lightlint.finding import Tier
from lightlint.values.core import Site, is_constant
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_ALONE = "only some ranks leave the loop here: the others wait in the next step's all-reduce"
_FLAG = "what leads out of the loop here is decided on some ranks only: the others go on and wait"
_STOPPED = "only some ranks tell their Trainer to stop here: the others wait for them in the next step"
_STOPPED_BY_OWN = (
    "each rank decides by its own numbers whether its Trainer stops here: the others wait for it in the next step"
)
_OWN = "each rank decides by its own numbers whether it leaves the loop here: the others wait in the next step's all-reduce"


class RankDependentLoopExit(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """A loop that one rank leaves, while the other goes on to a collective or to the gradients' all-reduce."""
        for first, second in entry.pairs():
            for path, other in ((first, second), (second, first)):
                yield from _left_alone(path, other)
        yield from self._stopped(entry)
        together = loops_together(entry)
        for looped in entry.of(Looped):
            if looped.loop.split and looped.loop.site in together:
                yield Fault.at(looped, _FLAG)
        for path in entry.paths:
            apart = {
                each.loop for each in path.of(Looped) if each.where.depends_on("rank")
            }  # other ranks have a way of their own
            for event in path.of(Left):
                if not event.leaves_loop or event.where.turns[-1].loop.site not in together:
                    continue
                if event.where.turns[-1].loop in apart:
                    continue
                if event.where.depends_on_unknown("on some ranks"):
                    yield Fault.at(event, _FLAG)
                elif event.where.depends_on_unknown("own data") and event.where.within("batch"):
                    yield Fault.at(event, _OWN)

    def _stopped(self, entry: Entry) -> Iterator[Fault]:
        """Where a rank alone tells its Trainer to stop, and nothing brings that to the others."""
        world = self.facts.world.lightning
        if world is Ranks.ONE:
            return
        alone = set(on_some_ranks(entry, AttributeSet, _stops))
        for path in entry.paths:
            for event in path.of(AttributeSet):
                own = event.where.depends_on_unknown("own data") and event.where.phase == "train"
                if _stops(event) and (event in alone or own) and not _is_agreed(path, event) and not _is_over(event):
                    tier = {True: Tier.WARNING, False: Tier.NOTE}[event in alone] if world is Ranks.MAYBE else None
                    yield Fault.at(event, _STOPPED if event in alone else _STOPPED_BY_OWN, tier=tier)


def _stops(event: AttributeSet) -> bool:
    """Whether a Trainer is told to stop after the batch."""
    trainer = isinstance(event.object, Instance) and event.object.kind == "trainer"
    return trainer and event.name == "should_stop" and not is_constant(event.value, False)


def _is_over(event: AttributeSet) -> bool:
    """Whether a test asks for the length of the run, with which it ends on all ranks."""
    return any(each.key is not None and speaks_of(each.key, _LENGTH) for each in event.where.conditions)


_LENGTH = re.compile("max_(?:epochs|steps)")


def _is_agreed(path: Path, event: AttributeSet) -> bool:
    """Whether all ranks set the flag anew behind that, to what they have agreed on."""
    sets = [each for each in path.of(AttributeSet) if each.name == "should_stop" and each.time > event.time]
    return any(not each.where.depends_on("rank") and each.site != event.site for each in sets)


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
    for looped in path.of(Looped) if not path.raised else ():  # an exception is no decision: it ends the program
        loop = looped.loop.site
        tested = isinstance(looped.loop.node, ast.While)  # a `for` left by nothing ends by its count
        ended = tested and 0 < _turns(path, loop) < _turns(other, loop)
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
