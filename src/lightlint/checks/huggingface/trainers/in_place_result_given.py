from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called
from lightlint.explore.questions.queries import sure
from lightlint.values.core import NoneOf

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_ROOTS = ("torch", "torchvision", "lightning", "transformers", "trl", "peft", "accelerate", "datasets", "deepspeed")


class InPlaceResultGiven(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Calls of a library that are given the None of what changes its object in place."""
        for event in sure(entry, Called, lambda each: _given(each) is not None):
            found = _given(event)
            if found is not None:
                argument, given = found
                what = f"`{argument}` is None" if argument else f"`{event.name}` is given None"
                message = f"`{given.name}` changes its object and gives back None: {what}"
                yield Fault.of(event, message, argument=argument)


def _given(event: Called) -> tuple[str, NoneOf] | None:
    """The argument that is such a None, "" for one without a name, and what gave it."""
    if event.path.partition(".")[0] not in _ROOTS or event.receiver is not None:
        return None
    for name, value in event.given.keywords.items():
        if isinstance(value, NoneOf):
            return name, value
    return next((("", each) for each in event.given.positional if isinstance(each, NoneOf)), None)
