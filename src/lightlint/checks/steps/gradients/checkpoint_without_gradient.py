from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Checkpointed, Stepped
from lightlint.explore.questions.queries import identity, in_sight

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class CheckpointWithoutGradient(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Reentrant checkpoints without an input that has a gradient, of parameters that are stepped and no pass reaches."""
        passes = list(entry.of(Backward))
        reached = {identity(each) for event in passes for each in (*event.parameters, *event.perhaps)}
        message = "no input of this reentrant checkpoint has a gradient, so nothing inside it is trained: say `use_reentrant=False`"
        for path in entry.paths:
            stepped = {each for event in path.of(Stepped) for each in event.parameters}
            for event in path.of(Checkpointed) if stepped else ():
                own = [each for each in event.parameters if each in stepped and in_sight([each])]
                if own and not any(each.gradient_touched or identity(each) in reached for each in own):
                    yield Fault.at(event, message)
