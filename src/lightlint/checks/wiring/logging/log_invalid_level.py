from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Logged
from lightlint.facts.releases.api import lightning_api
from lightlint.fixes.edits import remove_argument
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class LogInvalidLevel(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for event in entry.of(Logged) if not self.facts.lightning.may_be_below("1.5") else ():
            on_step, hook = event.keywords.get("on_step"), event.where.hook
            if is_constant(on_step, False) and is_constant(event.keywords.get("on_epoch"), False):
                yield Fault.of(event, "neither `on_step` nor `on_epoch`: Lightning raises")
            elif is_constant(on_step, True) and hook in lightning_api().log_epoch_only:
                message = f"`on_step=True` in `{hook}`, which belongs to no step: Lightning raises"
                yield Fault.of(event, message, argument="on_step")

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        argument = self.entry_of(node, fault.argument)
        if not isinstance(node, cst.Call) or not isinstance(argument, cst.Arg):
            return None
        return Repair("drop `on_step=True`", remove_argument(self.code, node, argument))
