from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Kind
from lightlint.facts.rank_tests import agrees
from lightlint.facts.tree import Loop
from lightlint.facts.world import Ranks

_NUMBERS = {"isnan", "isinf", "isfinite"}
# asks for what is alike on every rank
_SIZES = {"len", "size", "shape", "numel", "dim", "ndim"}
_DEPTH = 4


class BatchSkippedOnSomeRanks(Check):
    def stands(self) -> bool:
        return self.facts.world.raw is Ranks.MANY

    def visit_Continue(self, node: cst.Continue) -> None:
        loops = self.tree.loops(node)
        if not loops or not self.facts.processes.wraps:
            return
        loop = loops[0]
        backwards = self.facts.steps.runs(loop.body, self.loops.is_backward)
        behind = [each for each in backwards if self.tree.order(each) > self.tree.order(node)]
        if not backwards or len(behind) != len(backwards) or not self.loops.batch_loop(node):
            return
        if self.facts.steps.runs(loop.body, lambda call: agrees(self.names, call)):
            return
        tests = [test for test, _ in self.facts.conditions(node) if self.tree.contains(loop.body, test)]
        if any(self._follows_batch(test, loop, 0) for test in tests):
            self.report(
                node,
                "each rank decides by a batch of its own: one that leaves this out pairs its next backward pass with another step of the others",
            )

    def _follows_batch(self, test: cst.CSTNode, loop: Loop, depth: int) -> bool:
        """Whether a test asks whether numbers of this rank are finite, or for what its batch holds."""
        words = {name.value for name in self.tree.within(test, cst.Name)}
        calls = self.tree.within(test, cst.Call)
        if words & _SIZES or depth > _DEPTH:
            return False
        if any(self.names.method(each) in _NUMBERS for each in calls):
            return True
        for name in self.tree.within(test, cst.Name):
            for each in self.facts.reaching.bindings(name):
                if each.kind is Kind.LOOP and each.path and self.tree.contains(loop, each.site):
                    counted = self.names.call(each.value) == "builtins.enumerate" and each.path == (0,)
                    if not counted and self.values.is_batch_loop(loop):
                        return True
                inside = each.value is not None and self.tree.contains(loop.body, each.value)
                flagged = each.kind is Kind.ASSIGN and not each.path and inside
                if flagged and each.value is not None and self._follows_batch(each.value, loop, depth + 1):
                    return True
        return False
