from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import dotted_name
from lightlint.facts.world import Ranks
from lightlint.finding import Tier

_RANK_ZERO_ONLY = "lightning.utilities.rank_zero_only"


class RankZeroOnlyValueUsed(Check):
    def visit_Call(self, call: cst.Call) -> None:
        callee = self.hooks.callee(call)
        if callee is None or not self._is_rank_zero_only(callee) or not self._gives_value(callee):
            return
        use = self._use(call) if not self.guards.guarded(call) else None
        if use is None or self.guards.guarded(use):
            return
        world = self.facts.world
        if world.lightning is Ranks.ONE:
            return
        self.report(
            call,
            f"`{callee.name.value}` gives its value on rank zero, and None on the others, where it is used too",
            tier=Tier.NOTE if world.is_untold and world.raw is Ranks.ONE else None,
        )

    def _is_rank_zero_only(self, function: cst.FunctionDef) -> bool:
        return any(self.names.of(each.decorator) == _RANK_ZERO_ONLY for each in function.decorators)

    def _gives_value(self, function: cst.FunctionDef) -> bool:
        values = self.values.returns(function)
        return bool(values) and all(value is not None and dotted_name(value) != "None" for value in values)

    def _use(self, call: cst.Call) -> cst.CSTNode | None:
        """A use of a call's value that None does not survive: an attribute, item, operand or iteration of it."""
        if self._breaks_on_none(call):
            return call
        assign = self.tree.parent(call)
        if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
            return None
        target = assign.targets[0].target
        if isinstance(target, (cst.Tuple, cst.List)):
            return call
        function = self.tree.function(call)
        if function is None or not isinstance(target, cst.Name) or len(self.names.bindings.lookup(target)) != 1:
            return None
        uses = [each for each in self.tree.own(function, cst.Name) if each.value == target.value and each is not target]
        tested = [name for use in uses for name, _ in self.facts.conditions(use) if self._mentions(name, target.value)]
        return None if tested else next(filter(self._breaks_on_none, uses), None)

    def _mentions(self, test: cst.CSTNode, name: str) -> bool:
        return any(each.value == name for each in self.tree.within(test, cst.Name))

    def _breaks_on_none(self, value: cst.CSTNode) -> bool:
        match self.tree.parent(value):
            case cst.Attribute(value=base) | cst.Subscript(value=base):
                return base is value
            case cst.BinaryOperation():
                return True
            case cst.For(iter=drawn) | cst.CompFor(iter=drawn):
                return drawn is value
        return False
