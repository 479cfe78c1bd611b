from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.rank_tests import COLLECTIVES, on_some_ranks, other_ways

_IN_PLACE = {"copy_", "add_", "sub_", "mul_", "div_", "fill_", "zero_", "normal_", "uniform_", "clamp_", "lerp_"}
_ITEMS = {"parameters", "named_parameters"}


class ParametersChangedOnOneRank(Check):
    def visit_Call(self, call: cst.Call) -> None:
        model = self._loaded(call) or self._initialised(call) or self._changed_in_place(call)
        if model is None or not on_some_ranks(self.facts, call):
            return
        if self._is_shared(call, model) or not self.facts.forwards.trains_after(call):
            return
        self.report(
            call,
            f"`{self.code.text_of(call.func)}` changes a DDP model on some ranks only: the copies stay different",
        )

    def _loaded(self, call: cst.Call) -> cst.BaseExpression | None:
        """The DDP model that a call loads weights into."""
        if self.names.method(call) != "load_state_dict" or not isinstance(call.func, cst.Attribute):
            return None
        return self._of_wrapped(call.func.value)

    def _initialised(self, call: cst.Call) -> cst.BaseExpression | None:
        name = self.names.call(call) or ""
        known = name.startswith("torch.nn.init.") and name.endswith("_") and bool(call.args)
        return self._of_wrapped(call.args[0].value) if known else None

    def _changed_in_place(self, call: cst.Call) -> cst.BaseExpression | None:
        """The DDP model whose parameters a loop around a call goes over, `for p in model.parameters(): p.mul_(0.9)`."""
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in _IN_PLACE:
            return None
        tensor: cst.BaseExpression = func.value
        if isinstance(tensor, cst.Attribute) and tensor.attr.value == "data":
            tensor = tensor.value
        if not isinstance(tensor, cst.Name):
            return self._of_wrapped(tensor) if isinstance(tensor, cst.Attribute) else None
        loops = [each for each in self.tree.loops(call) if isinstance(each, cst.For)]
        for loop in loops:
            drawn = loop.iter
            bound = any(name.value == tensor.value for name in self.tree.within(loop.target, cst.Name))
            if bound and self.names.method(drawn) in _ITEMS and isinstance(drawn, cst.Call):
                return self._of_wrapped(drawn.func.value) if isinstance(drawn.func, cst.Attribute) else None
        return None

    def _of_wrapped(self, value: cst.BaseExpression) -> cst.BaseExpression | None:
        """The DDP model, or the module inside of it, that a value is or is a part of."""
        while True:
            if self.facts.data_parallel.is_of_wrapped(value):
                return value
            if not isinstance(value, cst.Attribute):
                return None
            value = value.value

    def _is_shared(self, call: cst.Call, model: cst.BaseExpression) -> bool:
        """Whether the other ranks may change it too: in another branch, by a broadcast, or because it is wrapped again."""
        if any(self.names.method(each) == self.names.method(call) for each in other_ways(self.facts, call)):
            return True
        owner = self.tree.owner(call)
        later = [each for each in self.tree.own(owner, cst.Call) if self._brings(each)]
        return self.facts.flow(owner).reaches(call, later)

    def _brings(self, call: cst.Call) -> bool:
        name = self.names.call(call) or ""
        sent = name in COLLECTIVES and name.rpartition(".")[2] not in {"barrier", "reduce", "gather"}
        return sent or "broadcast" in self.names.method(call) or name.endswith("DistributedDataParallel")
