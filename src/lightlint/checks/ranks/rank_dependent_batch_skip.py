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
        if self.names.constant(node.value) != -1 or world.lightning is Ranks.ONE or not self.guards.tests(node):
            return
        if any(self.names.method(call) in _AGREEING for call in self.tree.within(function, cst.Call)):
            return
        self.report(
            node,
            "only some ranks get here, and they leave the epoch without the others",
            tier=Tier.WARNING if world.lightning is Ranks.MAYBE else None,
        )
