from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Checkpointed, Stepped
from lightlint.explore.questions.queries import in_sight, sure

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class CheckpointWithoutGradient(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Reentrant checkpoints without an input that has a gradient, of parameters that are stepped and no pass reaches."""
        faults = {event for path in entry.paths if path.finished for event in _untrained(path)}
        message = "no input of this reentrant checkpoint has a gradient, so nothing inside it is trained: say `use_reentrant=False`"
        yield from (Fault.at(event, message) for event in sure(entry, Checkpointed, lambda each: each in faults))


def _untrained(path: Path) -> Iterator[Checkpointed]:
    stepped = {each for event in path.of(Stepped) for each in event.parameters}
    reached = {each for event in path.of(Backward) for each in (*event.parameters, *event.perhaps)}
    for event in path.of(Checkpointed):
        own = [each for each in event.parameters if each in stepped and in_sight([each])]
        if own and not any(each.gradient_touched or each in reached for each in own):
            yield event
