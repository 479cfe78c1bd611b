from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, ParametersChanged, Stepped
from lightlint.engine.events.huggingface import ManagedBackward
from lightlint.explore.questions.accelerators import accumulates
from lightlint.models.sequences import masks

if TYPE_CHECKING:
    from lightlint.engine.events import Event
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.training import Tensor

_UPDATES = ("step", "update", "update_parameters")
_MESSAGE = "the average is updated with each batch, and the weights change with one in several: its decay acts as often as batches come"


class AveragePerBatch(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Averages of weights that move on in each batch, where an Accelerator lets the optimizer step in one of several."""
        for path in entry.paths:
            backward = [each for each in path.of(ManagedBackward) if each.manager.kind == "accelerator"]
            if not any(accumulates(each.manager) for each in backward):
                continue
            for event in _updates(path):
                beside = [each for each in backward if event.where.within("batch") and _is_beside(event, each)]
                if beside and all(accumulates(each.manager) for each in beside) and not _is_chosen(event):
                    yield Fault(event.where.in_loop("batch"), _MESSAGE, None, (event.site,), event.where.places[1:])


def _updates(path: Path) -> Iterator[Event]:
    trained = {each for event in path.of(Stepped) for each in event.parameters}
    for event in path.of(ParametersChanged):
        if event.name == "lerp_" and trained.isdisjoint(event.parameters) and _is_of(event.given, trained):
            yield event
    for call in path.of(Called):
        if call.path in _UPDATES and call.receiver is not None and call.receiver.kind == "average":
            yield call


def _is_of(given: list[Tensor], trained: set[Tensor]) -> bool:
    """Whether something was made of weights that are trained."""
    return any(part in trained for each in given for part in (*masks.origins(each), *each.parameters))


def _is_beside(event: Event, backward: ManagedBackward) -> bool:
    """Whether both happen in one turn of the loop over batches."""
    turns = event.where.turns
    depth = max((place for place, turn in enumerate(turns) if turn.loop.kind == "batch"), default=-1)
    return turns[: depth + 1] == backward.where.turns[: depth + 1]


def _is_chosen(event: Event) -> bool:
    """Whether it happens in one turn of several, as where gradients are synchronised."""
    return any("periodic" in each.traits for each in event.where.conditions)
