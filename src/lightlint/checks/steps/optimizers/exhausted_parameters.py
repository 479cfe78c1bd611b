from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import UsedUp
from lightlint.fixes.edits import wrap

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class ExhaustedParameters(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Generators that somebody goes over when nothing is left in them."""
        for event in entry.of(UsedUp):
            message = "goes over a generator that is used up before: nothing is left in it here"
            yield Fault.at(event, message, *([event.made] if event.made is not None else []))

    def repair(self, _node: cst.CSTNode, fault: Fault) -> Repair | None:
        made = self.node_of(fault.also[0]) if fault.also else None
        if not isinstance(made, cst.BaseExpression):
            return None
        return Repair("make it a list", wrap(self.code, made, "list(", ")"))
