from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward
from lightlint.explore.questions.queries import in_sight
from lightlint.finding import Applicability
from lightlint.fixes.draft import Draft
from lightlint.fixes.edits import insert_argument, replace

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class PenaltyWithoutCreateGraph(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses that gradients are a part of which `torch.autograd.grad` gave as constants."""
        message = "gradients taken without `create_graph=True` are constants, so the part of the loss made of them trains nothing"
        for event in entry.of(Backward):
            if event.loss is not None and any(each.parameter for each in event.parameters) and in_sight([event.loss]):
                cuts = [cut for cut in event.loss.cuts if cut.how == "autograd.grad"]
                yield from (Fault(cut.site, message, also=event.where.places) for cut in cuts)

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        if not isinstance(node, cst.Call):
            return None
        given = self.facts.dicts.argument(node, "create_graph", 4)
        return Repair("create the graph", self._draft(node, given.value), Applicability.UNSAFE)

    def _draft(self, call: cst.Call, given: cst.BaseExpression | None) -> Draft | None:
        if given is None:
            return None if self.names.has_star(call) else insert_argument(self.code, call, "create_graph=True")
        return replace(self.code, given, "True") if self.tree.contains(call, given) else None
