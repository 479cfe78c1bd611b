from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Collective, Forward, Stepped
from lightlint.explore.questions.certain import anyhow
from lightlint.explore.questions.queries import in_sight
from lightlint.values.training import tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class GradientsNeverExchanged(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Models under DDP that train under `no_sync` in every forward pass of every path."""
        trained = [each for each in entry.of(Forward) if each.module.wrapper == "ddp" and each.grad and each.parameters]
        held = {event.held_back.site for event in trained if event.held_back is not None}
        sure = list(anyhow(trained)) == trained and all(map(_is_always_held, trained))
        if not held or not sure or _exchanges(entry):
            return
        stepped = {id(each) for event in entry.of(Stepped) for each in event.parameters}
        for event in trained:
            site = event.held_back.site if event.held_back is not None else None
            if site is not None and any(id(each) in stepped for each in event.parameters):
                message = "this model never runs outside of `no_sync`: no step exchanges gradients"
                yield Fault(site, message, None, (event.site,))


def _is_always_held(event: Forward) -> bool:
    """Whether a forward pass is under `no_sync`, and no code out of sight has the model."""
    return event.held_back is not None and in_sight([event.module])


def _exchanges(entry: Entry) -> bool:
    """Whether the program brings gradients together itself."""
    given = (value for event in entry.of(Collective) for value in event.args)
    return any(tensor.gradient_of is not None for value in given for tensor in tensors_in(value))
