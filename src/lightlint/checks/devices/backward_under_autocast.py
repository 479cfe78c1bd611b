from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_AUTOCAST = {"torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast"}


class BackwardUnderAutocast(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.method(call) != "backward" or self.names.of(call.func) is not None:
            return
        for above in self.tree.ancestors(call):
            if isinstance(above, (cst.FunctionDef, cst.Lambda)):
                return
            if isinstance(above, cst.With) and any(self.names.call(each.item) in _AUTOCAST for each in above.items):
                self.report(call, "the backward pass runs under autocast, which chooses its dtypes without it")
                return

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Backward passes that run while autocast is open."""
        for event in entry.of(Backward):
            if event.where.autocast is not None and event.via in ("backward", "unknown"):
                yield Fault.at(event, "the backward pass runs under autocast, which chooses its dtypes without it")
