from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, CalledUnknown, Configured, Differentiated, Stepped
from lightlint.explore.questions.queries import in_sight
from lightlint.values.training import Instance, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value


class ManualStepWithoutBackward(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Steps of a module that optimizes by hand, where no rehearsal comes to a backward pass."""
        by_hand = [event for event in entry.of(Configured) if event.automatic is False]
        if not by_hand or not entry.turned or any(_may_go_backward(path) for path in entry.paths):
            return
        for path in entry.paths:
            for event in path.of(Stepped):
                touched = any(each.gradient_touched or each.escaped for each in event.parameters)
                known = event.parameters and not touched and in_sight([event.optimizer])
                if known and event.where.hook == "training_step" and not event.closure:
                    yield Fault.at(
                        event, "an optimizer steps and no backward pass has given it gradients: no weight changes"
                    )


def _may_go_backward(path: Path) -> bool:
    """Whether a path goes backward, ends too early to tell, or hands what could to code out of sight."""
    passes = [*path.of(Backward), *path.of(Differentiated)]
    if not path.finished or passes:
        return True
    return any(_is_open(value) for event in path.of(CalledUnknown) for value in (event.callee, *event.values))


def _is_open(value: Value) -> bool:
    """Whether code that has a value could go backward from it."""
    receiver = getattr(value, "receiver", None)
    graphs = any(tensor.graph or tensor.mixed for tensor in tensors_in(value))
    held = [each for each in (value, receiver) if isinstance(each, Instance)]
    return graphs or any(each.kind in ("module", "optimizer", "trainer", "unknown") for each in held)
