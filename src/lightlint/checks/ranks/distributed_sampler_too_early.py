from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.hooks import Owner
from lightlint.facts.processes import PROCESS_GROUP
from lightlint.facts.world import Ranks

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
        if self.facts.world.lightning is Ranks.ONE or not self._runs_before_fit(call):
            return
        self.report(
            call, "no process group exists before `fit` makes it: the sampler raises without `num_replicas` and `rank`"
        )

    def _runs_before_fit(self, call: cst.Call) -> bool:
        """Whether a call surely runs in the main program on the way to `Trainer.fit`, where nothing joins a group before."""
        if any(self.names.call(each) == PROCESS_GROUP for each in self.tree.all(cst.Call)):
            return False
        pending, seen = [call], {call}
        for each in pending:
            owner = self.tree.owner(each)
            if self.hooks.around(each) or isinstance(self.hooks.owner(self.tree.enclosing_class(each)), Owner):
                return False
            fits = [other for other in self.tree.own(owner, cst.Call) if self._is_fit(other)]
            if fits and self.facts.flow(owner).reaches(each, fits):
                return True
            if isinstance(owner, cst.FunctionDef) and len(seen) < 20:
                more = [other for other in self.hooks.calls_of.get(owner, ()) if other not in seen]
                seen.update(more)
                pending.extend(more)
        return False

    def _is_fit(self, call: cst.Call) -> bool:
        if self.names.method(call) != "fit" or not isinstance(call.func, cst.Attribute):
            return False
        origin = self.values.constructor(call.func.value)
        return origin is not None and origin.name == "lightning.Trainer"
