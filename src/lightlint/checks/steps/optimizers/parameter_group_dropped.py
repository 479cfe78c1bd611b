from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Appended, Backward, OptimizerMade
from lightlint.explore.questions.queries import in_sight, sure
from lightlint.values.core import Library, Sequence
from lightlint.values.training import Optimizer, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site


class ParameterGroupDropped(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Lists of parameters that a function fills beside another one, which alone comes to the optimizer."""
        faults = {last: optimizer for path in entry.paths for last, optimizer in _dropped(path)}
        message = "these parameters are put into a list that no optimizer gets, so nothing trains them: hand it over with the others"
        for event in sure(entry, Appended, lambda each: each in faults):
            yield Fault.at(event, message, faults[event].site or event.site)


def _dropped(path: Path) -> Iterator[tuple[Appended, Optimizer]]:
    optimizers = [event.optimizer for event in path.of(OptimizerMade)]
    if not path.finished or not optimizers or not all(map(_is_known, optimizers)):
        return
    trained = {each: optimizer for optimizer in optimizers for each in optimizer.parameters}
    reached = {each for event in path.of(Backward) for each in event.parameters}
    filled: dict[Sequence, list[Appended]] = {}
    for event in path.of(Appended):
        if isinstance(event.value, Tensor) and event.value.parameter:
            filled.setdefault(event.container, []).append(event)
    given = {
        _function(events[-1]): trained[value]
        for events in filled.values()
        if isinstance(value := events[-1].value, Tensor) and value in trained
    }
    for events in filled.values():
        lost = [each.value for each in events if isinstance(each.value, Tensor) and each.value not in trained]
        whole = len(lost) == len(events) and all(each.requires_grad and each in reached for each in lost)
        beside = given.get(_function(events[-1]))
        if whole and beside is not None and in_sight([events[-1].container, *lost]):
            yield from ((each, beside) for each in events)


def _is_known(optimizer: Optimizer) -> bool:
    return in_sight([optimizer]) and not (optimizer.told or optimizer.more) and isinstance(optimizer.cls, Library)


def _function(event: Appended) -> tuple[Site, ...]:
    """Which call of a function filled a list: by the calls that led to it."""
    return event.where.places[1:]
