from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import CalledUnknown, Forward, LossComputed, ModeSet
from lightlint.models.sequences.masks import origins
from lightlint.values.core import Value
from lightlint.values.training import Loader, Tensor

if TYPE_CHECKING:
    from lightlint.engine.frames import Loop
    from lightlint.explore.rehearsals import Entry, Path

_PREDICTED = "predicted"


class LossWithoutModel(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses of a model's evaluation between two parts of a batch, in a loop that calls no model, where training gives the same
        criterion what a model said."""
        message = "this compares two parts of the batch with each other, and no model is called in this loop: give the loss what the model says"
        for path in entry.paths:
            trained = {
                event.function for event in path.of(LossComputed) if event.where.grad and _is_predicted(event.input)
            }
            losses = [event for event in path.of(LossComputed) if event.function in trained and not event.where.grad]
            called = _with_calls(path) if losses else set()
            evaluating = {each.where.places[1:]: each.time for each in path.of(ModeSet) if not each.training}
            for event in losses:
                loop = event.where.turns[-1].loop if event.where.turns else None
                parts = [_drawn_as(each) for each in (event.input, event.target)]
                apart = None not in parts and parts[0] != parts[1]
                begun = evaluating.get(
                    event.where.places[1:], event.time
                )  # by the same function: else it knows no model
                if (
                    apart
                    and begun < event.time
                    and loop is not None
                    and isinstance(loop.over, Loader)
                    and loop not in called
                ):
                    yield Fault.at(event, message)


def _with_calls(path: Path) -> set[Loop]:
    """The loops in which a model, or code out of sight, is called."""
    return {turn.loop for event in (*path.of(Forward), *path.of(CalledUnknown)) for turn in event.where.turns}


def _is_predicted(value: Value | None) -> bool:
    return isinstance(value, Tensor) and _PREDICTED in value.traits and value.requires_grad


def _drawn_as(value: Value | None) -> tuple[Loader, object] | None:
    """Of which loader a batch something is a part, and which, moved or in another shape at most."""
    for each in origins(value):
        if each.batch_of is not None and each.role == "batch" and each.part is not None and not each.escaped:
            return each.batch_of, each.part
    return None
