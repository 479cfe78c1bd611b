from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.joining import led_to, left_alone
from lightlint.facts.sharded import SHARDERS, WRAPPER

_STATE = "torch.distributed.checkpoint.state_dict."
_GETS = {f"{_STATE}{name}" for name in ("get_model_state_dict", "get_optimizer_state_dict", "get_state_dict")}
_OF_CLASS = {f"{WRAPPER}.{name}" for name in ("summon_full_params", "full_optim_state_dict", "optim_state_dict")}
_OTHER_TYPES = {"LOCAL_STATE_DICT", "SHARDED_STATE_DICT"}


class ShardedStateOnSomeRanks(Check):
    def visit_Call(self, call: cst.Call) -> None:
        waiting = call if self._gathers(call) else led_to(self.facts, call, self._gathers)
        if waiting is None or not left_alone(self.facts, call, self._gathers):
            return
        shown = self.code.text_of(waiting.func)
        if waiting is call:
            self.report(call, f"`{shown}` gathers the shards of all ranks, and only some of them get here")
            return
        helper = self.code.text_of(call.func)
        self.report(
            call,
            f"`{helper}` leads to `{shown}`, which gathers the shards of all ranks, and only some of them get here",
        )

    def _gathers(self, call: cst.Call) -> bool:
        """Whether a call brings the shards of a model's state together, for which every rank has to come."""
        name = self.names.call(call) or ""
        if name in _OF_CLASS:
            return not self._mentions({"NO_SHARD"})
        if name in _GETS:
            return self._asks_for_all(call) and self._is_sharded(call)
        func = call.func
        if not isinstance(func, cst.Attribute) or call.args:
            return False
        if func.attr.value == "full_tensor":
            return any(self.names.call(each) in SHARDERS for each in self.tree.all(cst.Call))
        if func.attr.value != "state_dict" or not self.facts.sharded.surely_wrapped(func.value):
            return False
        return not self._mentions(_OTHER_TYPES)

    def _mentions(self, members: set[str]) -> bool:
        """Whether the file speaks of a strategy or kind of state dict with which nothing is gathered."""
        return any(each.attr.value in members for each in self.tree.all(cst.Attribute))

    def _is_sharded(self, call: cst.Call) -> bool:
        model = self.names.argument(call, "model", 0)
        return model is not None and self.facts.sharded.is_sharded(model.value)

    def _asks_for_all(self, call: cst.Call) -> bool:
        """Whether the options of a call surely ask for whole tensors."""
        options = self.names.argument(call, "options")
        sources = self.facts.reaching.sources(options.value) if options is not None else []
        asked = [
            self.names.argument(each, "full_state_dict", 0)
            for each in sources
            if isinstance(each, cst.Call) and self.names.call(each) == f"{_STATE}StateDictOptions"
        ]
        told = [each is not None and self.names.constant(each.value) is True for each in asked]
        return bool(told) and len(told) == len(sources) and all(told)
