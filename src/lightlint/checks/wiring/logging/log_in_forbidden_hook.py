from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Logged
from lightlint.facts.releases.api import lightning_api

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

# called through other ways than the Trainer's hooks, and what they are called in may allow it
_NOT_CALLED_AS_HOOKS = {"state_dict", "load_state_dict"}


class LogInForbiddenHook(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        forbidden = lightning_api().log_forbidden - _NOT_CALLED_AS_HOOKS
        for event in entry.of(Logged) if not self.facts.lightning.may_be_below("1.5") else ():
            hook = event.where.hook
            if hook in forbidden and not self.is_versioned(event):
                yield Fault.of(event, f"`{event.method}` in `{hook}`, where Lightning keeps no results: it raises")
