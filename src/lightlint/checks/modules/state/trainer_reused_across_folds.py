from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, Looped
from lightlint.explore.questions.certain import anyhow
from lightlint.values.core import Site, is_constant
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.engine.frames import Condition, Loop
    from lightlint.explore.rehearsals import Entry

_OPEN_ENDED = {"fast_dev_run", "max_time", "overfit_batches"}


class TrainerReusedAcrossFolds(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Trainers that end by their number of epochs and are told to fit again in a later turn."""
        found: list[Called] = []
        for path in entry.paths:
            fits: dict[tuple[object, Site], Called] = {}
            around = {event.loop: len(event.where.conditions) for event in path.of(Looped)}
            for event in path.of(Called):
                trainer = event.receiver
                if (
                    event.path != "fit"
                    or trainer is None
                    or trainer.kind != "trainer"
                    or any(each.known for each in _in_loop(event, around))
                ):
                    continue
                if (trainer, event.site) in fits and not trainer.escaped and _ends_itself(trainer):
                    found.append(event)
                fits[trainer, event.site] = event
        message = "this Trainer has reached its last epoch after the first `fit`: later ones train nothing"
        yield from (Fault.at(event, message) for event in anyhow(found))


def _in_loop(event: Called, around: dict[Loop, int]) -> tuple[Condition, ...]:
    """The tests inside of the loop around an event, of which a number of tests lies outside."""
    outer = event.where.turns[0].loop if event.where.turns else None
    return event.where.conditions[around.get(outer, 0) if outer is not None else 0 :]


def _ends_itself(trainer: Instance) -> bool:
    """Whether the number of epochs ends a fit: a later one then ends at once."""
    given = trainer.arguments
    if trainer.open_arguments or any(name in given for name in _OPEN_ENDED):
        return False
    written = given.get("max_epochs")
    return "max_steps" not in given if written is None else not is_constant(written, -1, None)
