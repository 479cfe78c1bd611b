from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import NextTaken, Stepped
from lightlint.engine.frames import Condition, Loop
from lightlint.explore.questions.certain import held_anyhow
from lightlint.models.data.loaders import length

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class NextIterInLoop(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Iterators over one loader that each turn of a loop makes, for one batch, where turns are steps."""
        found: dict[NextTaken, list[Condition]] = {}
        for path in entry.paths:
            taken: dict[object, list[NextTaken]] = {}
            uses = Counter(event.iterator for event in path.of(NextTaken))
            for event in path.of(NextTaken):
                if uses[event.iterator] == 1 and not event.iterator.escaped:
                    taken.setdefault((event.site, event.loader), []).append(event)
            for events in taken.values():
                for first, second in pairwise(events):
                    tests = _tests_apart(path, first) if _is_next_turn(first, second) else None
                    if tests is not None and not any(each.known for each in tests):
                        found[second] = tests
        message = "each step starts this loader anew for one batch: no step gets the second one"
        yield from (Fault.at(event, message) for event in held_anyhow(found, found.__getitem__))


def _is_next_turn(first: NextTaken, second: NextTaken) -> bool:
    """Whether the loop that is open has come to the next turn, with an iterator that it has made itself."""
    before, after = first.where.turns, second.where.turns
    if not before or len(before) != len(after) or before[:-1] != after[:-1] or before[-1].loop is not after[-1].loop:
        return False
    start = after[-1].loop.made
    return before[-1].number < after[-1].number and first.iterator.made > start > first.loader.made


def _tests_apart(path: Path, taken: NextTaken) -> list[Condition] | None:
    """The tests that decide about a batch, and not about the step of the same turn; None where turns are no steps."""
    steps = [step for step in path.of(Stepped) if step.where.same_turn(taken.where)]
    tests = [*taken.where.conditions, *taken.iterator.opened_under]
    apart = [[each for each in tests if each not in step.where.conditions] for step in steps]
    if apart:
        return min(apart, key=len)
    return tests if _goes_through(taken) else None


def _goes_through(taken: NextTaken) -> bool:
    """Whether a loop has a turn for each batch of the loader, and no end before."""
    loop = taken.where.turns[-1].loop
    counted = loop.bound is not None and loop.bound.key == length(taken.loader).key
    drawn = loop.over is taken.loader and not isinstance(loop.node, ast.While)
    return (counted or drawn) and not _may_leave(loop)


def _may_leave(loop: Loop) -> bool:
    return loop.node is None or any(isinstance(each, (ast.Break, ast.Return)) for each in ast.walk(loop.node))
