from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Configured, Misused
from lightlint.fixes.edits import replace
from lightlint.values.core import NotYet, Sequence

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_GIVERS = {"optimizers": "optimizer", "lr_schedulers": "scheduler"}


class OptimizerCountMismatch(Check):
    def stands(self) -> bool:
        return not self.facts.project.users(self.facts.path, "configure_optimizers")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        if not _is_settled(entry):
            return
        for path in entry.paths:
            seen: set[tuple[int, int]] = set()
            for event in path.of(Misused):
                call = event.where.calls[-1].function if event.where.calls else None
                use = (id(event.value), id(call))
                message = _message(event)
                if message and use not in seen:  # the first raises
                    seen.add(use)
                    yield Fault.at(event, message)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """Drop the index of what is one."""
        if not isinstance(node, cst.Subscript) or self.names.method(node.value) not in _GIVERS:
            return None
        index = node.slice[0].slice
        if not isinstance(index, cst.Index) or self.names.constant(index.value) not in (0, -1):
            return None
        return Repair("take it as it is", replace(self.code, node, self.code.text_of(node.value)))


def _is_settled(entry: Entry) -> bool:
    """Whether `configure_optimizers` gives as many optimizers and schedules on all paths, whatever the options."""
    made = [*entry.of(Configured)]
    counts = {(event.module.cls.key, len(event.optimizers), len(event.schedules)) for event in made}
    certain = (entry.turned or not any(event.guesses for event in made)) and not any(
        event.assumptions for event in made
    )
    return len(counts) == len({event.module.cls.key for event in made}) and certain


def _message(event: Misused) -> str:
    value = event.value
    giver = value.name if isinstance(value, NotYet) else value.giver
    what = _GIVERS.get(giver)
    if what is None:
        return ""
    if isinstance(value, NotYet):
        return f"`self.{giver}()` is None: `configure_optimizers` returns no {what}"
    if not isinstance(value, Sequence):
        return f"`self.{giver}()` is one {what} and no list of them"
    if event.asked == "unpack":
        return f"`self.{giver}()` gives {len(value.items)} {what}s to {event.width} names"
    return f"`self.{giver}()` is a list of {len(value.items)} {what}s, which has no `{event.asked}`"
