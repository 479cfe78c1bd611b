from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.loops import LoopKind
from lightlint.facts.names import UNKNOWN
from lightlint.facts.rank_tests import COLLECTIVES, splits
from lightlint.facts.tree import Loop
from lightlint.facts.world import Ranks

_BRINGING = COLLECTIVES - {f"torch.distributed.{name}" for name in ("barrier", "reduce", "gather", "gather_object")}
_PLAIN = {"builtins.bool", "builtins.int", "builtins.float"}
_READING = {"item", "any", "all", "bool", "int", "cpu"}
_NEW = {f"torch.{name}" for name in ("zeros", "tensor", "full", "zeros_like", "as_tensor")}


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
        key = self.names.key(self._flag(test))
        if not key or any(self._may_bring(call, key) for call in self.tree.within(loop.body, cst.Call)):
            return False
        inside = self._changes(loop.body, key)
        decided = [site for site in inside if not self._is_start(site, loop)]
        return bool(decided) and all(
            any(splits(self.tree, self.names, self.guards, t) for t, _ in self.facts.conditions(site))
            for site in decided
        )

    def _flag(self, test: cst.BaseExpression) -> cst.BaseExpression:
        """The flag that a test asks for: `stop` of `stop.item() == 1`, `bool(stop)` and `not stop[0]`."""
        match test:
            case cst.UnaryOperation(operator=cst.Not()):
                return self._flag(test.expression)
            case cst.Comparison(comparisons=[only]) if self.names.constant(only.comparator) is not UNKNOWN:
                return self._flag(test.left)
            case cst.Call(args=[only]) if self.names.call(test) in _PLAIN:
                return self._flag(only.value)
            case cst.Call(func=cst.Attribute() as func, args=[]) if func.attr.value in _READING:
                return self._flag(func.value)
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer()))]):
                return test.value  # of a tensor; an item of a dict is a flag by itself
        return test

    def _may_bring(self, call: cst.Call, key: str) -> bool:
        """Whether a call may bring a flag to all ranks: a collective, a helper with one that names it, or one it is given to."""
        name = self.names.call(call)
        if name in _BRINGING:
            return True
        handed = [part for arg in call.args for part in self.tree.within(arg.value, cst.Name, cst.Attribute)]
        if not (name or "").startswith("builtins.") and any(self.names.key(part) == key for part in handed):
            return True
        helper = self.facts.steps.callee(call)
        parts = self.tree.within(helper.body, cst.Name, cst.Attribute) if helper is not None else ()
        named = any(self.names.key(part) == key for part in parts)
        return named and self.facts.steps.leads(call, lambda each: self.names.call(each) in _BRINGING)

    def _changes(self, body: cst.CSTNode, key: str) -> list[cst.Assign | cst.AugAssign | cst.Call]:
        """What assigns to a flag, to its items, or changes its tensor in place."""
        found: list[cst.Assign | cst.AugAssign | cst.Call] = []
        for assign in self.tree.own(body, cst.Assign, cst.AugAssign):
            targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
            whole = [each.value for each in targets if isinstance(each, cst.Subscript)]
            found += [assign] if any(self.names.key(each) == key for each in (*targets, *whole)) else []
        for call in self.tree.own(body, cst.Call):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value.endswith("_") and self.names.key(func.value) == key:
                found.append(call)
        return found

    def _is_start(self, site: cst.Assign | cst.AugAssign | cst.Call, loop: Loop) -> bool:
        """Whether the flag gets its first value of an iteration on every rank: a plain False, zero, or a new tensor."""
        line = self.tree.parent(self.tree.parent(site) or site)
        line = self.tree.parent(line or site) if isinstance(line, cst.SimpleStatementLine) else line
        if line is not loop.body:
            return False
        if isinstance(site, cst.Call):
            given = site.args[0].value if site.args else None
            return self.names.method(site) == "zero_" or (
                given is not None and self.names.constant(given) in (0, False)
            )
        value = self.names.constant(site.value)
        return isinstance(site, cst.Assign) and (value in (0, False) or self.names.call(site.value) in _NEW)
