from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.rank_tests import on_some_ranks, other_ways
from lightlint.finding import Tier


class DdpForwardOnOneRank(Check):
    def visit_Call(self, call: cst.Call) -> None:
        models = self.facts.data_parallel
        if not self.facts.forwards.leads_to_forward(call) or not on_some_ranks(self.facts, call):
            return
        if any(self._may_run(each) for each in other_ways(self.facts, call)):
            return
        trains = self.facts.steps.leads(call, self.loops.is_backward)
        buffered = models.has_buffers
        if buffered is False and not trains:
            return
        waits = "gradients" if trains else "buffers" if buffered else "any buffers"
        self.report(
            call,
            f"`{self.code.text_of(call.func)}` runs a DDP model on some ranks only, which exchanges {waits} with all",
            tier=None if trains or buffered else Tier.WARNING,
        )

    def _may_run(self, call: cst.Call) -> bool:
        """Whether a call of the other ranks runs a DDP model, or hands one to code out of sight."""
        models = self.facts.data_parallel
        return self.facts.forwards.leads_to_forward(call) or any(models.is_wrapped(arg.value) for arg in call.args)
