from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward
from lightlint.explore.queries import in_sight
from lightlint.facts.penalties import Penalties
from lightlint.finding import Applicability
from lightlint.fixes.draft import Draft
from lightlint.fixes.edits import insert_argument, replace

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class PenaltyWithoutCreateGraph(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.of(call.func) != "torch.autograd.grad":
            return
        given = self.facts.dicts.argument(call, "create_graph", 4)
        off = given.sure if given.value is None else self.names.constant(given.value) is False
        if off and Penalties(self.facts).is_one(call):
            self.report(
                call,
                "gradients taken without `create_graph=True` are constants, so the part of the loss made of them trains nothing",
                repair=Repair("create the graph", self._draft(call, given.value), Applicability.UNSAFE),
            )

    def _draft(self, call: cst.Call, given: cst.BaseExpression | None) -> Draft | None:
        if given is None:
            return None if self.names.has_star(call) else insert_argument(self.code, call, "create_graph=True")
        return replace(self.code, given, "True") if self.tree.contains(call, given) else None

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses that gradients are a part of which `torch.autograd.grad` gave as constants."""
        message = "gradients taken without `create_graph=True` are constants, so the part of the loss made of them trains nothing"
        for event in entry.of(Backward):
            if event.loss is not None and any(each.parameter for each in event.parameters) and in_sight([event.loss]):
                cuts = [cut for cut in event.loss.cuts if cut.how == "autograd.grad"]
                yield from (Fault(cut.site, message, also=event.where.places) for cut in cuts)
