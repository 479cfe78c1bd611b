from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import (
    Appended,
    Called,
    Event,
    LoaderMade,
    RowsPicked,
    SampleMade,
    SplitDrawn,
    Stepped,
    WindowCut,
)
from lightlint.explore.questions.queries import are_same
from lightlint.explore.samples import whole_of
from lightlint.values.core import Sequence, Unknown, Value, is_constant
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_DEPTH = 4
_MESSAGE = "windows that begin one step apart (line {}) are split at random: those held out share all but a few of their steps with those trained on"


class WindowsSplitAtRandom(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Random splits of windows of one series, each of which begins one step behind the one before."""
        if not any(path.of(Stepped) for path in entry.paths):
            return
        for path in entry.paths:
            for split in path.of(SplitDrawn):
                row = _row_of_windows(path, split.data[0]) if split.data and not _in_order(path, split) else None
                if row is not None:
                    yield Fault.at(split, _MESSAGE.format(row))
            for first, rows in _parted(path):
                row = _row_of_windows(path, rows)
                if row is not None:
                    yield Fault.at(first, _MESSAGE.format(row))


def _parted(path: Path) -> Iterator[tuple[Event, Value]]:
    """Rows that one part of a random order picks, where the rest of it picks the others."""
    picks: list[tuple[Event, Value, tuple[Value, Value, Value]]] = [
        (event, event.value, (event.order, event.lower, event.upper)) for event in path.of(RowsPicked)
    ]
    for call in path.of(Called):
        indices = call.argument("indices", 1) if call.name == "Subset" else None
        data = call.argument("dataset", 0)
        if indices is not None and data is not None and indices.order_cut is not None:
            picks.append((call, data, indices.order_cut))
    for made in path.of(LoaderMade):
        sampler, data = made.loader.sampler, made.loader.data
        indices = sampler.argument("indices", 0) if isinstance(sampler, Instance) else None
        if indices is not None and data is not None and indices.order_cut is not None:
            picks.append((made, data, indices.order_cut))
    for first, rows, (order, lower, upper) in picks:
        if is_constant(lower, None, 0) and not is_constant(upper, None):
            rest = [cut for _, other, cut in picks if are_same(rows, other) and are_same(order, cut[0])]
            if any(are_same(cut[1], upper) for cut in rest):
                yield first, rows


def _in_order(path: Path, split: SplitDrawn) -> bool:
    """Whether `train_test_split` is told whether to shuffle, or by which groups or classes."""
    calls = [each for each in path.of(Called) if each.site == split.site and each.name == split.name]
    return any(each.argument(word) is not None for each in calls for word in ("shuffle", "stratify"))


def _row_of_windows(path: Path, data: Value) -> int | None:
    """Where windows of a series are cut of which data consists."""
    if isinstance(data, Instance):
        tensors = data.arguments.get("tensors")
        if isinstance(tensors, Sequence) and "indices" not in data.arguments:
            return next((row for each in tensors.items if (row := _row_of_windows(path, each)) is not None), None)
        samples = [each for each in path.of(SampleMade) if whole_of(each.loader.data) is data]
        return next((one.site[1] for each in samples for one in each.events if isinstance(one, WindowCut)), None)
    for each in _origins(data):
        if isinstance(each, Sequence):
            added = [event.where.turns for event in path.of(Appended) if event.container is each]
            for cut in path.of(WindowCut):
                turns = cut.where.turns
                comprehended = bool(turns) and each.site is not None and turns[-1].loop.site == each.site
                if comprehended or any(turns[: len(one)] == one for one in added if one):
                    return cut.site[1]
    return None


def _origins(value: Value, depth: int = 0) -> Iterator[Value]:
    """A value and what it was made of by calls that only put it into another form."""
    yield value
    if isinstance(value, Unknown) and depth < _DEPTH:
        for each in (*value.lent, *([] if value.given_by is None else [value.given_by])):
            yield from _origins(each, depth + 1)
