from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Looped, LossDivided
from lightlint.values.core import Constant, Value
from lightlint.values.training import Instance, Loader, Tensor

if TYPE_CHECKING:
    from lightlint.engine.frames import Loop
    from lightlint.explore.rehearsals import Entry, Path

_DEPTH = 5
_SECOND = 2


class TotalOverwritten(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses of a loop's last batch that are divided, behind the loop, by the number of its batches or samples."""
        message = "this is the loss of the last batch alone, for each batch overwrites the one before, and is divided by the number of all: add it to a total"
        for path in entry.paths:
            for event in path.of(LossDivided):
                if any(_is_of_last_turn(loop, event) for loop in _loops_over(path, event)):
                    yield Fault.at(event, message)


def _loops_over(path: Path, event: LossDivided) -> Iterator[Loop]:
    """The loops over a loader by whose length, or by that of whose data, something is divided behind them."""
    for loop in (each.loop for each in path.of(Looped)):
        loader = loop.over
        if not isinstance(loader, Loader) or loop.turn < _SECOND or not loop.made < loop.ended < event.time:
            continue
        lengths = [loader.number] + ([loader.data.number] if isinstance(loader.data, Instance) else [])
        if event.count in [("length", each) for each in lengths]:
            yield loop


def _is_of_last_turn(loop: Loop, event: LossDivided) -> bool:
    return all(loop.begun <= each < loop.ended for each in _made(event.loss))


def _made(value: Value, depth: int = 0) -> Iterator[int]:
    """When what a loss was added up of was made; what is unknown may be of any time."""
    symbol, parts = value.terms if value.terms is not None and depth < _DEPTH else ("", ())
    if symbol in ("+", "-", "*", "/"):
        for each in parts:
            yield from _made(each, depth + 1)
    elif isinstance(value, Tensor):
        yield value.made
    elif not isinstance(value, Constant):
        key = value.key
        known = isinstance(key, tuple) and key[:1] == ("item",) and isinstance(key[-1], int)
        yield key[-1] if known and isinstance(key, tuple) else -1
