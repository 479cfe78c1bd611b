from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Logged
from lightlint.facts.api import lightning_api
from lightlint.facts.hooks import Owner

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

# called through other ways than the Trainer's hooks, and what they are called in may allow it
_NOT_CALLED_AS_HOOKS = {"state_dict", "load_state_dict"}


class LogInForbiddenHook(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.facts.lightning.may_be_below("1.5") or not self.facts.logs.is_log(call):
            return
        forbidden = lightning_api().log_forbidden - _NOT_CALLED_AS_HOOKS
        hooks = {hook for hook in self.hooks.around(call) if hook.owner is not Owner.DATA_MODULE}
        if not hooks or not all(hook.name in forbidden for hook in hooks):
            hooks = set(self.facts.logs.sure_hooks(call))
        bad = sorted({hook.name for hook in hooks} & forbidden)
        in_try = any(isinstance(above, cst.Try) for above in self.tree.ancestors(call))
        if bad and not in_try:
            self.report(call, f"`{self.names.method(call)}` in `{bad[0]}`, where Lightning keeps no results: it raises")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        forbidden = lightning_api().log_forbidden - _NOT_CALLED_AS_HOOKS
        for event in entry.of(Logged) if not self.facts.lightning.may_be_below("1.5") else ():
            hook = event.where.hook
            if hook in forbidden and not self.is_versioned(event):
                yield Fault.of(event, f"`{event.method}` in `{hook}`, where Lightning keeps no results: it raises")
