from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Stepped, StepReturned
from lightlint.explore.questions.queries import in_sight, inside
from lightlint.finding import Tier
from lightlint.values.core import is_constant
from lightlint.values.training import Tensor, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class BackwardInAutomatic(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes by hand in a `training_step` whose result Lightning goes back over, or would if it gave one."""
        for path in entry.paths:
            pending: list[Backward] = []
            stepped: set[Tensor] = set()
            for event in path.events:
                if isinstance(event, Backward) and inside(event.where, "training_step"):
                    pending.append(event)
                elif isinstance(event, Stepped) and event.via == "lightning optimizer":
                    stepped |= set(event.parameters)
                elif isinstance(event, StepReturned):
                    yield from _by_hand(pending, event, stepped) if event.automatic else ()
                    pending, stepped = [], set()


_MESSAGE = "a backward pass over a loss in a step whose backward pass is Lightning's"
_BY_HAND = "the whole step is by hand beside Lightning's own, which makes none only as long as this returns nothing"


def _by_hand(passes: list[Backward], returned: StepReturned, stepped: set[Tensor]) -> Iterator[Fault]:
    given = {graph for each in tensors_in(returned.result) for graph in each.graph}
    for event in passes:
        if event.via == "manual_backward":
            yield Fault.at(event, "`manual_backward` raises, since `automatic_optimization` is not turned off")
        elif event.graph & given and not event.kept and in_sight([returned.module, *tensors_in(returned.result)]):
            yield Fault.at(event, _MESSAGE)
        elif stepped & set(event.parameters) and in_sight([returned.module]):  # the whole step is by hand
            nothing = is_constant(returned.result, None)
            if not (nothing and returned.written):  # who writes `return None` knows what it does
                yield Fault.at(event, _BY_HAND if nothing else _MESSAGE, tier=Tier.WARNING)
