from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, OptimizerMade
from lightlint.explore.questions.queries import identity, in_sight
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lightlint.explore.rehearsals import Entry


class TrainedModuleWithoutGrad(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parameters that an optimizer steps and no pass of any path reaches, used only while gradients are off."""
        reached = {identity(each) for event in entry.of(Backward) for each in (*event.parameters, *event.perhaps)}
        if not entry.turned or not all(path.finished for path in entry.paths) or not reached:
            return
        message = "a group of parameters is used with gradients turned off only, so it is never updated: let gradients through, or leave the group out"
        for event in entry.of(OptimizerMade):
            optimizer = event.optimizer
            if len(optimizer.groups) == 1 and optimizer.more:
                continue  # what is out of sight in it trains, as a rule
            if optimizer.steps and in_sight([optimizer]) and any(_is_lost(each, reached) for each in optimizer.groups):
                yield Fault.at(event, message)


def _is_lost(group: list[Tensor], reached: set[Hashable]) -> bool:
    """Whether a group was used while gradients were off and no backward pass gets to it."""
    plain = all(each.requires_grad and not each.gradient_touched and in_sight([each]) for each in group)
    return any(each.blind for each in group) and plain and not any(identity(each) in reached for each in group)
