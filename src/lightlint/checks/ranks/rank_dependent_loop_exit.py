from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import dotted_name
from lightlint.facts.loops import LoopKind
from lightlint.facts.rank_tests import COLLECTIVES, splits
from lightlint.facts.tree import Loop
from lightlint.facts.world import Ranks

_BRINGING = COLLECTIVES - {f"torch.distributed.{name}" for name in ("barrier", "reduce", "gather", "gather_object")}


class RankDependentLoopExit(Check):
    def visit_Break(self, node: cst.Break) -> None:
        self._judge(node)

    def visit_Return(self, node: cst.Return) -> None:
        self._judge(node)

    def _judge(self, node: cst.Break | cst.Return) -> None:
        loops = self.tree.loops(node)
        loop = loops[0] if loops else None
        if loop is None or self.loops.kind(loop) is LoopKind.OTHER or self.facts.world.raw is not Ranks.MANY:
            return
        if not self.facts.processes.wraps or not self.facts.steps.runs(loop.body, self.loops.is_backward):
            return
        tests = [test for test, _ in self.facts.conditions(node) if self.tree.contains(loop.body, test)]
        if any(splits(self.tree, self.names, self.guards, test) for test in tests):
            self.report(node, "only some ranks leave the loop here: the others wait in the next step's all-reduce")
        elif any(self._is_set_on_some_ranks(test, loop) for test in tests):
            self.report(
                node, "what leads out of the loop here is decided on some ranks only: the others go on and wait"
            )

    def _is_set_on_some_ranks(self, test: cst.BaseExpression, loop: Loop) -> bool:
        """Whether a flag is set under a rank test in the loop, and no collective brings it to the others."""
        key = self.names.key(test)
        brought = any(self.names.call(call) in _BRINGING for call in self.tree.within(loop.body, cst.Call))
        if not key or brought:
            return False
        assigned = self.tree.own(loop.body, cst.Assign)
        inside = [each for each in assigned if any(self.names.key(target.target) == key for target in each.targets)]
        return (
            bool(inside)
            and all(
                any(splits(self.tree, self.names, self.guards, t) for t, _ in self.facts.conditions(site))
                for site in inside
                if not self._is_start(site, loop)
            )
            and not all(self._is_start(site, loop) for site in inside)
        )

    def _is_start(self, site: cst.Assign, loop: Loop) -> bool:
        """Whether an assignment gives the flag its first value of an iteration on every rank: a plain False."""
        return dotted_name(site.value) == "False" and self.tree.parent(self.tree.parent(site) or site) is loop.body
