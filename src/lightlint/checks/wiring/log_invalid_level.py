from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Logged
from lightlint.facts.api import lightning_api
from lightlint.fixes.edits import remove_argument
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LogInvalidLevel(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.facts.lightning.may_be_below("1.5") or not self.facts.logs.is_log(call):
            return
        on_step, on_epoch = (self.facts.logs.argument(call, name) for name in ("on_step", "on_epoch"))
        if on_step is False and on_epoch is False:
            self.report(call, "neither `on_step` nor `on_epoch`: Lightning raises")
            return
        hooks = sorted(
            hook.name for hook in self.facts.logs.sure_hooks(call) if hook.name in lightning_api().log_epoch_only
        )
        argument = self.names.argument(call, "on_step")
        if on_step is True and hooks and argument is not None:
            draft = remove_argument(self.code, call, argument)
            message = f"`on_step=True` in `{hooks[0]}`, which belongs to no step: Lightning raises"
            self.report(argument, message, repair=Repair("drop `on_step=True`", draft))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.of(Logged) if not self.facts.lightning.may_be_below("1.5") else ():
            on_step, hook = event.keywords.get("on_step"), event.where.hook
            if is_constant(on_step, False) and is_constant(event.keywords.get("on_epoch"), False):
                yield Fault.of(event, "neither `on_step` nor `on_epoch`: Lightning raises")
            elif is_constant(on_step, True) and hook in lightning_api().log_epoch_only:
                yield Fault.of(event, f"`on_step=True` in `{hook}`, which belongs to no step: Lightning raises")
