from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.rank_tests import COLLECTIVES
from lightlint.facts.spread import Spread

_REDUCE = "torch.distributed.reduce"
_BRINGING = COLLECTIVES - {_REDUCE, "torch.distributed.barrier", "torch.distributed.gather"}


class ReduceResultOnAllRanks(Check):
    def visit_Call(self, call: cst.Call) -> None:
        given = self.names.argument(call, "tensor", 0) if self.names.call(call) == _REDUCE else None
        if given is None or not isinstance(given.value, cst.Name) or self.guards.guarded(call):
            return
        if self.names.argument(call, "group", 3) is not None or not isinstance(self.tree.parent(call), cst.Expr):
            return
        owner = self.tree.owner(call)
        if any(self.names.call(each) in _BRINGING for each in self.tree.own(owner, cst.Call)):
            return
        uses = Spread(self.tree, owner, self.facts.flow(owner)).uses(given.value.value, call)
        decided = next((what for use in uses if (what := self._decides(use)) and not self.guards.guarded(use)), "")
        if decided:
            spelled = given.value.value
            self.report(call, f"`{spelled}` is the sum on one rank only, and on all of them {decided}")

    def _decides(self, use: cst.Name) -> str:
        """What a use decides that the ranks have to decide alike: a scheduler's step, or a way out."""
        for above in self.tree.ancestors(use):
            if isinstance(above, cst.Call) and self.facts.updates.is_scheduler_step(above):
                return "a scheduler steps with it"
            if isinstance(above, cst.If):
                inside = self.tree.contains(above.test, use)
                leaves = self.tree.own(above.body, cst.Break, cst.Return)
                ends = [each for each in leaves if not self.guards.guarded(each)]
                return "it decides who goes on" if inside and ends else ""
            if isinstance(above, cst.BaseStatement):
                return ""
        return ""
