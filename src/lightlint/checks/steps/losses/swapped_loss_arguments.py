from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import LossComputed
from lightlint.finding import Applicability
from lightlint.fixes.edits import join, replace
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class SwappedLossArguments(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses that get a piece of a batch for the prediction, and what hangs on parameters for the target."""
        for event in entry.of(LossComputed):
            given, target = event.input, event.target
            if event.wants == "any" or not isinstance(given, Tensor) or not isinstance(target, Tensor):
                continue
            drawn = given.role == "batch" and not given.graph and not given.escaped
            if drawn and target.graph and target.role != "batch" and not target.escaped:
                yield Fault.at(event, f"`{event.function}` takes the prediction first, and is given the data first")

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        given = self.names.argument(node, "input", 0) if isinstance(node, cst.Call) else None
        target = self.names.argument(node, "target", 1) if isinstance(node, cst.Call) else None
        if given is None or target is None or given.star or target.star:
            return None
        first, second = self.code.text_of(given.value), self.code.text_of(target.value)
        draft = join(replace(self.code, given.value, second), replace(self.code, target.value, first))
        return Repair("exchange the arguments", draft, Applicability.UNSAFE)
