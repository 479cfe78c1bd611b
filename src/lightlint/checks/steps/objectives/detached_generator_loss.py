from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Cleared, Stepped
from lightlint.explore.questions.queries import in_sight, sure
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class DetachedGeneratorLoss(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes behind which an optimizer steps that got no gradient, since what its module gave was detached, on each path."""
        faults = {event for path in entry.paths for event in _cut_off(path)}
        message = "this loss hangs on the module that is stepped next through `detach()` alone: its optimizer gets no gradient"
        yield from (Fault.at(event, message) for event in sure(entry, Backward, lambda each: each in faults))


def _cut_off(path: Path) -> Iterator[Backward]:
    held: set[Tensor] = set()
    last: Backward | None = None
    for event in path.events:
        if isinstance(event, Backward):
            held |= set(event.parameters)
            last = event
        elif isinstance(event, Cleared):
            held -= set(event.parameters)
        elif isinstance(event, Stepped):
            if last is not None and not held & set(event.parameters) and _is_cut_off(last, event):
                yield last
            last = None


def _is_cut_off(event: Backward, step: Stepped) -> bool:
    """Whether the loss of a pass that trains something hangs on the parameters of a step through `detach()`."""
    own, loss = set(step.parameters), event.loss
    if loss is None or not any(each.parameter for each in event.parameters):
        return False
    cut = any(cut.how == "detach" and cut.parameters & own for cut in loss.cuts)
    return cut and in_sight([loss, step.optimizer, *_owners(own)]) and not any(each.gradient_touched for each in own)


def _owners(parameters: set[Tensor]) -> list[Module]:
    return [each.owner for each in parameters if each.owner is not None]
