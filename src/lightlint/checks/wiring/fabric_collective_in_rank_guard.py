from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.rank_tests import on_rank_zero_only
from lightlint.facts.world import FABRIC, Ranks

_COLLECTIVE = {"save", "barrier", "all_reduce", "all_gather", "broadcast", "setup", "setup_module"}


class FabricCollectiveInRankGuard(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in _COLLECTIVE:
            return
        if not self.facts.fabrics.is_fabric(func.value) or self._is_alone(func.value):
            return
        tests = self.guards.tests(call)
        decorated = not tests and on_rank_zero_only(self.facts, call)
        if decorated or (tests and not self._has_partner(call, func.attr.value, [test for test, _ in tests])):
            shown = "rank_zero_only" if decorated else self.code.text_of(tests[-1][0])
            self.report(
                call, f"`{self.code.text_of(func)}` waits for all ranks, of which `{shown}` lets only some come here"
            )

    def _is_alone(self, fabric: cst.BaseExpression) -> bool:
        """Whether there surely is one process only."""
        maker = self.facts.fabrics.constructor(fabric)
        return (maker is not None and self.names.call(maker) == FABRIC) and self.facts.world.lightning is Ranks.ONE

    def _has_partner(self, call: cst.Call, method: str, tests: list[cst.BaseExpression]) -> bool:
        """Whether the ranks on the other side of a test make the same call."""
        others = [each for each in self.tree.own(self.tree.owner(call), cst.Call) if self.names.method(each) == method]
        sides = {(test, outcome) for test, outcome in self.guards.tests(call)}
        for other in others:
            met = [(test, outcome) for test, outcome in self.guards.tests(other) if test in tests]
            if any((test, outcome) not in sides for test, outcome in met):
                return True
        return False
