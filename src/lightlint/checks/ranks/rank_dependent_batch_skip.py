from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.hooks import Hook, Owner
from lightlint.facts.world import Ranks
from lightlint.finding import Tier

_AGREEING = {"all_reduce", "broadcast", "all_gather", "reduce", "reduce_boolean_decision", "broadcast_object_list"}
_AGREEING |= {"all_gather_object", "gather"}


class RankDependentBatchSkip(Check):
    def visit_Return(self, node: cst.Return) -> None:
        function = self.tree.function(node)
        hook = self.hooks.of(function) if function is not None else None
        if function is None or hook != Hook(Owner.MODULE, "on_train_batch_start"):
            return  # Lightning ignores what callbacks return
        world = self.facts.world
        if world.lightning is Ranks.ONE or not self._leaves(node):
            return
        if any(self.names.method(call) in _AGREEING for call in self.tree.within(function, cst.Call)):
            return
        if self.guards.tests(node) or (isinstance(node.value, cst.IfExp) and self.guards.is_test(node.value.test)):
            self.report(
                node,
                "only some ranks get here, and they leave the epoch without the others",
                tier=Tier.WARNING if world.lightning is Ranks.MAYBE else None,
            )
        elif any(self.facts.processes.follows_data(test) for test, _ in self.facts.conditions(node)):
            self.report(
                node,
                "each rank has a batch of its own, and one that gets here leaves the epoch without the others",
                tier=Tier.NOTE if world.lightning is Ranks.MAYBE else None,
            )

    def _leaves(self, node: cst.Return) -> bool:
        """Whether a `return` surely answers -1, on the ranks of one outcome at least."""
        value = node.value
        arms = (value.body, value.orelse) if isinstance(value, cst.IfExp) else (value,)
        return any(self.names.constant(each) == -1 for each in arms)
