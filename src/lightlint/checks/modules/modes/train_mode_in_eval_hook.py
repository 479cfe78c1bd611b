from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward, ModeSet
from lightlint.explore.questions.certain import anyhow

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_PHASES = ("val", "test")
_MEANT = re.compile(r"dropout|monte|\bmc|mc_|_mc\b|uncertain|ensemble|bayes|batch_?norm|_bn|bn_", re.IGNORECASE)


class TrainModeInEvalHook(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that are put in training mode while Lightning evaluates, and run in it."""
        found: list[ModeSet] = []
        for path in entry.paths:
            runs = [event for event in path.of(Forward) if event.where.phase in _PHASES and event.training]
            for event in path.of(ModeSet):
                asked = event.training and event.where.phase in _PHASES and not event.module.escaped
                if not asked or any(each.known for each in event.where.conditions) or self._is_meant(event):
                    continue
                inside = event.module.modules()
                back = [
                    e for e in path.of(ModeSet) if not e.training and e.where.phase in _PHASES and e.time > event.time
                ]
                if any(each.module in inside or event.module in each.module.modules() for each in back):
                    continue
                if any(
                    run.module in inside and (run.by_mode or not run.module.children()) and run.time > event.time
                    for run in runs
                ):
                    found.append(event)
        message = "this is in training mode from here on: dropout drops, batch norm learns from this data"
        yield from (Fault.at(event, message) for event in anyhow(found))

    def _is_meant(self, event: ModeSet) -> bool:
        """Whether the hook speaks of what a module in training mode is wanted for."""
        return any(map(_MEANT.search, self.facts.rehearsed.lines_around(event.site)))
