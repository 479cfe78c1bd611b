"""What is saved in checkpoints, and what is read of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.engine.events import EntryKept, Event, RangeBegun, StateRead, Written
from lightlint.explore.questions.queries import identity_of
from lightlint.values.core import Constant, Mapping
from lightlint.values.training import Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Path
    from lightlint.values.core import Site, Value


def read_keys(paths: list[Path]) -> dict[Site, set[Hashable] | None]:
    """What is read of the checkpoints that each `torch.load` gives; None where it may be anything."""
    found: dict[Site, set[Hashable] | None] = {}
    for path in paths:
        for event in path.of(StateRead):
            keys = found.setdefault(event.load.site, set())
            known = isinstance(event.key, Constant) and not event.state.escaped
            if keys is not None and known and isinstance(event.key, Constant):
                keys.add(event.key.value)
            else:
                found[event.load.site] = None
    return found


def idle_keys(paths: list[Path]) -> dict[Site, set[Hashable]]:
    """What is read of the checkpoints that each `torch.load` gives and only put under names that nobody reads."""
    asked: dict[tuple[Site, Hashable], int] = {}
    kept: dict[tuple[Site, Hashable], set[Value]] = {}
    used: set[tuple[Site, Hashable]] = set()
    for path in paths:
        for read in path.of(StateRead):
            key = read.key.value if isinstance(read.key, Constant) else None
            asked[read.load.site, key] = asked.get((read.load.site, key), 0) + 1
        for event in path.of(EntryKept):
            entry = (event.load.site, event.key)
            kept.setdefault(entry, set()).add(event.value)
            used |= {entry} if event.back or not path.finished else set()
    found: dict[Site, set[Hashable]] = {}
    for entry, values in kept.items():
        if entry not in used and asked.get(entry) == len(values):
            found.setdefault(entry[0], set()).add(entry[1])
    return found


def saves_of(paths: list[Path], optimizer: Optimizer) -> Iterator[Written]:
    """Where checkpoints with the state of an optimizer are written whose content is all in sight."""
    for path in paths:
        for event in path.of(Written):
            content = event.value
            if event.name == "torch.save" and isinstance(content, Mapping) and not content.more:
                sources = [each.source for each in content.items.values() if isinstance(each, Mapping)]
                if any(identity_of(each) == identity_of(optimizer) for each in sources if isinstance(each, Optimizer)):
                    yield event


def unread(save: Written, keys: set[Hashable], idle: set[Hashable]) -> Iterator[tuple[Hashable, Value]]:
    """What a checkpoint holds beside what is read of it, and used, if it holds all that is read."""
    items = save.value.items if isinstance(save.value, Mapping) else {}
    if keys <= items.keys():
        yield from ((key, value) for key, value in items.items() if key not in keys or key in idle)


def counted_behind(path: Path, event: Event, value: Value) -> Iterator[RangeBegun]:
    """The ranges, or counting loops, behind an event one of whose numbers a value is, or is worked out from."""
    lines = {*_lines(value.key)}
    for each in path.of(RangeBegun):
        if each.time > event.time and not lines.isdisjoint(each.rows or {each.site[1]}):
            yield each


def _lines(key: object) -> Iterator[object]:
    """Where the ranges stand whose numbers a key is made of."""
    if isinstance(key, tuple):
        if key[:1] in (("index",), ("counter",)):
            yield key[1]
        else:
            yield from (line for each in key for line in _lines(each))
