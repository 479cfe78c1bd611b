from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.hooks import Owner
from lightlint.facts.processes import PROCESS_GROUP
from lightlint.facts.world import Ranks

_DEPTH = 3
_SAMPLERS = {"torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler"}


class DistributedSamplerTooEarly(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) not in _SAMPLERS or self.names.has_star(call):
            return
        if (
            self.names.argument(call, "num_replicas", 1) is not None
            and self.names.argument(call, "rank", 2) is not None
        ):
            return
        joined = any(self.names.call(each) == PROCESS_GROUP for each in self.tree.all(cst.Call))
        if joined and self._runs_before_group(call):
            maker = "`init_process_group`"
        elif not joined and self.facts.world.lightning is not Ranks.ONE and self._runs_before_fit(call):
            maker = "`fit`"
        else:
            return
        message = (
            f"no process group exists before {maker} makes it: the sampler raises without `num_replicas` and `rank`"
        )
        self.report(call, message)

    def _runs_before_group(self, call: cst.Call, depth: int = 0) -> bool:
        """Whether a call surely runs on the way to `init_process_group`, which makes the first group there is: a second raises."""
        owner = self.tree.owner(call)
        if self._is_optional(call):
            return False
        flow, tests = self.facts.flow(owner), self.facts.conditions(call)
        joins = [each for each in self.tree.own(owner, cst.Call) if each is not call and self._joins(each, 0)]
        if joins:
            after = [each for each in joins if not self._is_optional(each) and self.facts.conditions(each) == tests]
            return not any(flow.reaches(each, [call]) for each in joins) and flow.reaches(call, after)
        if tests or depth > _DEPTH or not isinstance(owner, cst.FunctionDef):
            return False
        calls = (*self.hooks.calls_of.get(owner, ()), *self.hooks.constructions.get(owner, ()))
        return len(calls) == 1 and self._runs_before_group(calls[0], depth + 1)

    def _joins(self, call: cst.Call, depth: int) -> bool:
        """Whether a call is `init_process_group`, or runs it without a test."""
        if self.names.call(call) == PROCESS_GROUP:
            return True
        callee = self.hooks.callee(call) if depth < _DEPTH else None
        inner = self.tree.own(callee.body, cst.Call) if callee is not None else []
        return any(
            self._joins(each, depth + 1) and not self.facts.conditions(each) and not self._is_optional(each)
            for each in inner
        )

    def _is_optional(self, call: cst.Call) -> bool:
        """Whether a part of a statement may go without a call, or expects it to fail."""
        optional = (cst.IfExp, cst.BooleanOperation, cst.Lambda, cst.Try)
        return any(isinstance(each, optional) for each in self.tree.ancestors(call))

    def _runs_before_fit(self, call: cst.Call) -> bool:
        """Whether a call surely runs in the main program on the way to `Trainer.fit`, where nothing joins a group before."""
        pending, seen = [call], {call}
        for each in pending:
            owner = self.tree.owner(each)
            made = isinstance(owner, cst.FunctionDef) and owner.name.value == "__init__"
            inside = isinstance(self.hooks.owner(self.tree.enclosing_class(each)), Owner) and not made
            if self.hooks.around(each) or inside:
                return False
            fits = [other for other in self.tree.own(owner, cst.Call) if self._is_fit(other)]
            if fits and self.facts.flow(owner).reaches(each, fits):
                return True
            if isinstance(owner, cst.FunctionDef) and len(seen) < 20:
                calls = (*self.hooks.calls_of.get(owner, ()), *self.hooks.constructions.get(owner, ()))
                more = [other for other in calls if other not in seen]
                seen.update(more)
                pending.extend(more)
        return False

    def _is_fit(self, call: cst.Call) -> bool:
        if self.names.method(call) != "fit" or not isinstance(call.func, cst.Attribute):
            return False
        origin = self.values.constructor(call.func.value)
        return origin is not None and origin.name == "lightning.Trainer"
