from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Called
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class GradModeLeftOff(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Backward passes of losses without a graph behind a call that turned autograd off for good."""
        for path in entry.paths:
            switches = [event for event in path.of(Called) if event.path == "torch.set_grad_enabled"]
            for event in path.of(Backward):
                before = [each for each in switches if each.time < event.time]
                if not before or event.where.grad or event.where.phase or event.loss is None or event.loss.escaped:
                    continue
                off = is_constant(before[-1].argument("mode", 0), False) and not event.loss.requires_grad
                once = any(
                    "periodic" in each.traits and "%" not in repr(each.key) for each in before[-1].where.conditions
                )
                if off and not once and not any("no_grad" in call.function.flags for call in event.where.calls):
                    message = (
                        "nothing turns autograd on again: the next iteration's `backward()` finds no graph and raises"
                    )
                    yield Fault.at(before[-1], message)
