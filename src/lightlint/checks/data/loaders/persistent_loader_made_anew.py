from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, CalledUnknown, LoaderMade, Looped
from lightlint.explore.questions.certain import anyhow
from lightlint.explore.questions.queries import are_same
from lightlint.values.core import Value, is_constant, number_of
from lightlint.values.training import Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class PersistentLoaderMadeAnew(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Loaders with persistent workers that each round of a loop makes anew, of the same data, for one pass."""
        found: list[LoaderMade] = []
        for path in entry.paths:
            made = [event for event in path.of(LoaderMade) if _persists(path, event)]
            if len(made) < 2:
                continue
            whole = (event.loop.over for event in path.of(Looped) if not _is_handed_on(event))
            passes = Counter(each.number for each in whole if isinstance(each, Loader))
            for first, second in pairwise(made):
                once = passes[first.loader.number] == 1 and not first.loader.escaped
                if once and _is_next_round(first, second) and not _changes(path, first, second):
                    found.append(second)
        message = "`persistent_workers` keeps no worker: the loop around makes this loader anew in every round"
        yield from (Fault.at(event, message) for event in anyhow(found))


def _is_handed_on(event: Looped) -> bool:
    """Whether a loop goes over a loader for another one around it, as in a generator."""
    return any(turn.loop.over is event.loop.over for turn in event.where.turns)


def _persists(path: Path, event: LoaderMade) -> bool:
    """Whether a loader is to keep workers."""
    given = event.loader.arguments
    asked = given.get("persistent_workers")
    workers = given.get("num_workers")
    some = workers is not None and number_of(workers) != 0
    return some and asked is not None and (is_constant(asked, True) or path.machine.truth(asked) is True)


def _is_next_round(first: LoaderMade, second: LoaderMade) -> bool:
    """Whether a loop has made the same loader again in its next turn."""
    before, after = first.where.turns, second.where.turns
    if first.site != second.site or not before or len(before) != len(after) or before[:-1] != after[:-1]:
        return False
    return before[-1].loop is after[-1].loop and after[-1].number == before[-1].number + 1


def _changes(path: Path, first: LoaderMade, second: LoaderMade) -> bool:
    """Whether the data is other data in the next round, or may have been changed."""
    data, other = first.loader.data, second.loader.data
    if data is None or other is None or not are_same(data, other):
        return True

    def is_data(value: Value | None) -> bool:
        return value is not None and are_same(value, data)

    changed = any(is_data(e.object) for e in path.of(AttributeSet) if first.time < e.time < second.time)
    called = [e for e in path.of(CalledUnknown) if first.time < e.time < second.time]
    return changed or any(is_data(getattr(e.callee, "holder", None)) or any(map(is_data, e.values)) for e in called)
