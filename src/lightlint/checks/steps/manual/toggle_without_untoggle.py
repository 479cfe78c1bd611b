from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, Configured, Left, StepReturned
from lightlint.explore.questions.queries import in_sight
from lightlint.values.training import Module, Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_ON, _OFF = "toggle_optimizer", "untoggle_optimizer"


class ToggleWithoutUntoggle(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Optimizers that are still toggled when a step that optimizes by hand returns."""
        if f".{_ON}" not in entry.calls or not any(event.automatic is False for event in entry.of(Configured)):
            return
        frees = f".{_OFF}" in entry.calls or any(each.attr.value == _OFF for each in self.tree.all(cst.Attribute))
        for path in entry.paths:
            for event in _left_on(path, early=frees):
                name = self._toggled(event)
                if frees:
                    message = f"a `return` leaves {name} toggled: the other parameters stay frozen"
                else:
                    owner = event.receiver.name if event.receiver is not None else ""
                    message = f"nothing in `{owner}` untoggles {name}: the other parameters stay frozen"
                yield Fault.at(event, message)

    def _toggled(self, event: Called) -> str:
        call = self.node_of(event.site)
        plain = isinstance(call, cst.Call) and self.names.method(call) == _ON and call.args
        return f"`{self.code.text_of(call.args[0].value)}`" if isinstance(call, cst.Call) and plain else "the optimizer"


def _left_on(path: Path, *, early: bool) -> Iterator[Called]:
    """The toggles that no untoggle follows before the step returns; `early`: only those before which it leaves by a test."""
    on: dict[int, Called] = {}
    left = False
    for event in path.events:
        if isinstance(event, Called) and event.path in (_ON, _OFF) and isinstance(event.receiver, Module):
            optimizer = event.argument("optimizer", 0)
            number = optimizer.number if isinstance(optimizer, Optimizer) else None
            if number is None or not in_sight([event.receiver]):
                return
            if event.path == _ON:
                on[number], left = event, False
            else:
                on.pop(number, None)
        elif isinstance(event, Left) and event.word == "return" and event.where.hook == "training_step":
            left = True
        elif isinstance(event, StepReturned):
            yield from (each for each in on.values() if left or not early)
            on, left = {}, False
