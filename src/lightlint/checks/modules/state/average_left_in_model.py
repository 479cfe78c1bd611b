from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, StateLoaded, Stepped
from lightlint.values.core import Sequence, Value
from lightlint.values.training import Instance, Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_MESSAGE = "`copy_to` puts the average into the model, and no `restore` comes before training goes on: it goes on from the average"


class AverageLeftInModel(Check):
    users_with = ("DataLoader",)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Averages that were put into a model whose own weights had been stored, and were still there when it was trained on."""
        left = {event for path in entry.paths for event in _trained_on(path)}
        copies = [each for each in entry.of(Called) if each.path == "copy_to" and _average(each) is not None]
        right = {each.site for path in entry.paths for each in _put_back(path)}
        yield from (Fault.at(each, _MESSAGE) for each in copies if each in left and each.site not in right)


def _average(event: Called) -> Instance | None:
    return event.receiver if event.receiver is not None and event.receiver.kind == "average" else None


def _trained_on(path: Path) -> Iterator[Called]:
    """The calls that put an average into a model, and no other weights before an optimizer changed it."""
    stored: dict[Instance, bool] = {}
    put: dict[Called, set[Tensor]] = {}
    for event in path.events:
        if isinstance(event, Called) and (average := _average(event)) is not None:
            if event.path == "store":
                stored[average] = True
            elif event.path == "copy_to" and stored.get(average):
                put[event] = _parameters(event)
            elif event.path not in ("step", "update", "to"):
                put = {each: held for each, held in put.items() if each.receiver is not average}
        elif isinstance(event, StateLoaded) and isinstance(event.object, Module):
            put.clear()
        elif isinstance(event, Stepped):
            yield from (each for each, held in put.items() if held & set(event.parameters))


def _put_back(path: Path) -> Iterator[Called]:
    """The calls behind which the stored weights were restored before the next call that puts an average into a model."""
    last: dict[Instance, Called] = {}
    for event in path.of(Called):
        if (average := _average(event)) is None:
            continue
        if event.path == "copy_to":
            last[average] = event
        elif event.path == "restore" and average in last:
            yield last[average]


def _parameters(event: Called) -> set[Tensor]:
    """The parameters that a call changes: those that it is given, else those that the average was made with."""
    average = _average(event)
    given: Value | None = event.argument("parameters", 0) or (average.argument("parameters", 0) if average else None)
    if isinstance(given, Module):
        return set(given.parameters())
    return {each for each in given.items if isinstance(each, Tensor)} if isinstance(given, Sequence) else set()
