from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import BatchDrawn, Called, SplitDrawn
from lightlint.values.core import Class, Unknown, Value
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_SEEDING = {"manual_seed", "seed_everything", "seed", "set_seed", "seed_all", "fork_rng", "set_rng_state"}
_EVALUATION = ("val", "test")
_DEPTH = 3


class SplitDrawnTwice(Check):
    users_with = ("Trainer",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Splits of the same data that are drawn anew, of which other parts are taken than of an earlier one."""
        drawn = [found for each in self.facts.rehearsed.entries for path in each.paths[:1] for found in _splits(path)]
        mine = {id(event) for event in entry.of(SplitDrawn)}
        for number, second in enumerate(drawn):
            if id(second) in mine and any(_is_same_again(first, second) for first in drawn[:number]):
                message = f"`{second.name}` draws anew: this part shares samples with the one that was taken before"
                yield Fault.at(second, message)
        for path in entry.paths:
            for second in _set_up_again(path):
                message = f"`{second.name}` draws anew as `setup` runs once more: what is evaluated then shares samples with what was trained on"
                yield Fault.at(second, message)


def _splits(path: Path) -> Iterator[SplitDrawn]:
    """The splits of a path that go by no seed, and of which some parts are thrown away."""
    for event in _unseeded(path):
        if 0 < len(event.parts.taken) < len(event.parts.items):
            yield event


def _unseeded(path: Path) -> Iterator[SplitDrawn]:
    before = 0
    for event in path.of(SplitDrawn):
        if not event.seeded and not _is_seeded(path, before, event.time):
            yield event
        before = event.time


def _is_seeded(path: Path, start: int, end: int) -> bool:
    """Whether a generator was seeded behind the split before."""
    calls = (each for each in path.of(Called) if start < each.time < end)
    return any(each.path.rpartition(".")[2] in _SEEDING for each in calls)


def _set_up_again(path: Path) -> Iterator[SplitDrawn]:
    """Splits that a `setup` draws for an evaluation after the same `setup` has drawn others, on a part of which a Trainer has
    trained: another part than the one that is evaluated."""
    before: dict[Hashable, SplitDrawn] = {}
    for event in path.of(SplitDrawn):
        first = before.setdefault(event.site, event) if event.where.hook == "setup" else event
        if first is event or not any(event is each for each in _unseeded(path)):
            continue
        drawn = path.of(BatchDrawn)
        trained = {_place(first, each) for each in drawn if each.where.phase == "train" and each.time < event.time}
        tested = {_place(event, each) for each in drawn if each.where.phase in _EVALUATION and each.time > event.time}
        if trained - {None} and tested - trained - {None}:
            yield event


def _place(split: SplitDrawn, event: BatchDrawn) -> int | None:
    """Which part of a split a batch is drawn from; None where it is of none."""
    parts = {id(each): place for place, each in enumerate(split.parts.items)}
    return next((parts[id(each)] for each in _made_over(event.loader.data) if id(each) in parts), None)


def _made_over(data: Value | None, depth: int = 0) -> Iterator[Value]:
    """A data set and those that it holds."""
    if isinstance(data, Instance) and depth < _DEPTH:
        yield data
        for each in (*data.arguments.values(), *data.attributes.values()):
            yield from _made_over(each, depth + 1)


def _is_same_again(first: SplitDrawn, second: SplitDrawn) -> bool:
    """Whether two splits are of the same data in the same class, and other parts are taken of them."""
    if first.name != second.name or first.site == second.site or len(first.parts.items) != len(second.parts.items):
        return False
    if _owner(first) != _owner(second) or first.parts.taken & second.parts.taken:
        return False
    pairs = list(zip(first.data, second.data, strict=False))
    return len(first.data) == len(second.data) > 0 and all(_are_same(*each) for each in pairs)


def _owner(event: SplitDrawn) -> str:
    owner = event.where.calls[-1].function.owner if event.where.calls else None
    return owner.name if owner is not None else ""


def _are_same(one: Value, other: Value) -> bool:
    """Whether two values are one, or are made of the same: a data set of the same files."""
    recipe = _recipe(one)
    return one is other or (recipe is not None and recipe == _recipe(other))


def _recipe(value: Value) -> Hashable:
    if isinstance(value, Instance):
        first = next(iter(value.arguments.values()), None)
        known = None if isinstance(value.cls, Class) or first is None else _recipe(first)
        return (value.cls.key, known) if known is not None else None
    return _without_numbers(value.key) if isinstance(value, Unknown) else None


def _without_numbers(key: Hashable) -> Hashable:
    """A key in which an object is any of its kind: each rehearsal makes its own."""
    if isinstance(key, tuple):
        return ("object",) if key[:1] == ("object",) else tuple(map(_without_numbers, key))
    return key
