from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import dotted_name
from lightlint.facts.processes import DATA_PARALLEL

_CASTS = {"half", "double", "bfloat16"}
_ADDING = {"add_module", "register_module", "register_parameter"}


class DdpChangedAfterWrap(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        target = assign.targets[0].target if len(assign.targets) == 1 else None
        if not isinstance(target, cst.Attribute):
            return
        if target.attr.value == "requires_grad":
            self._judge_switch(target, target.value, dotted_name(assign.value))
        elif self._inner(target.value) and (self.values.is_module(assign.value) or self._is_parameter(assign.value)):
            spelled = self.code.text_of(target)
            self._tell(target, f"`{spelled}` is new to a model that DDP has wrapped: its gradients are not exchanged")

    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute):
            return
        if func.attr.value in _ADDING and self._inner(func.value):
            spelled = self.code.text_of(func)
            self._tell(call, f"`{spelled}` adds to a model that DDP has wrapped: its gradients are not exchanged")
        elif func.attr.value in _CASTS and not call.args and self.facts.data_parallel.is_of_wrapped(func.value):
            spelled = self.code.text_of(func)
            self._tell(
                call, f"`{spelled}` replaces parameters that DDP has wrapped: gradients are not exchanged any more"
            )
        elif func.attr.value == "requires_grad_":
            given = call.args[0].value if call.args else None
            self._judge_switch(call, func.value, "True" if given is None else dotted_name(given))

    def _judge_switch(self, at: cst.CSTNode, value: cst.BaseExpression, state: str) -> None:
        """Parameters that begin or end to be trained after the wrapping."""
        part = self._part(value)
        if part is None:
            return
        spelled = self.code.text_of(part)
        if state == "True" and self._was_frozen():
            self._tell(at, f"`{spelled}` was frozen when DDP wrapped it: its gradients are not exchanged")
        elif state == "False" and not self._finds_unused():
            self._tell(at, f"`{spelled}` is frozen after DDP has wrapped it, which waits for its gradients and raises")

    def _part(self, value: cst.BaseExpression) -> cst.BaseExpression | None:
        """The part of a wrapped model that a value is, or whose parameters it goes over in a loop."""
        if isinstance(value, cst.Name):
            for loop in (each for each in self.tree.loops(value) if isinstance(each, cst.For)):
                drawn = loop.iter
                named = any(name.value == value.value for name in self.tree.within(loop.target, cst.Name))
                items = self.names.method(drawn) == "parameters"
                if named and items and isinstance(drawn, cst.Call) and isinstance(drawn.func, cst.Attribute):
                    whole = isinstance(drawn.func.value, (cst.Attribute, cst.Subscript))
                    return self._part(drawn.func.value) if whole else None
            return None
        inner = isinstance(value, (cst.Attribute, cst.Subscript)) and self._inner(value.value)
        return value if inner and not self.facts.data_parallel.is_of_wrapped(value) else None

    def _inner(self, value: cst.BaseExpression) -> bool:
        """Whether a value is the module inside of a DDP model, or a part of it."""
        while isinstance(value, (cst.Name, cst.Attribute)):
            models = self.facts.data_parallel
            if models.is_inner(value) and models.is_of_wrapped(value):
                return True
            if not isinstance(value, cst.Attribute):
                return False
            value = value.value
        return False

    def _is_parameter(self, value: cst.BaseExpression) -> bool:
        return self.names.call(value) == "torch.nn.Parameter"

    def _tell(self, at: cst.CSTNode, message: str) -> None:
        """Report, unless the model is not trained after that, or wrapped anew first."""
        owner = self.tree.owner(at)
        wraps = [each for each in self.tree.own(owner, cst.Call) if self.names.call(each) == DATA_PARALLEL]
        again = bool(wraps) and self.facts.flow(owner).reaches(at, wraps)
        if not again and not self.facts.gradients.may_be_off(at) and self.facts.forwards.trains_after(at):
            self.report(at, message)

    def _was_frozen(self) -> bool:
        """Whether something surely is frozen before the wrapping: in no way behind it."""
        models = self.facts.data_parallel
        sites: list[cst.BaseExpression] = [
            each.targets[0].target
            for each in self.tree.all(cst.Assign)
            if len(each.targets) == 1 and dotted_name(each.value) == "False"
        ]
        sites += [
            each.func
            for each in self.tree.all(cst.Call)
            if self.names.method(each) == "requires_grad_" and each.args and dotted_name(each.args[0].value) == "False"
        ]
        frozen = [
            each for each in sites if isinstance(each, cst.Attribute) and each.attr.value.startswith("requires_grad")
        ]
        return any(models.precedes_wrap(each) for each in frozen)

    def _finds_unused(self) -> bool:
        """Whether DDP is, or may be, told to look for parameters without a gradient."""
        wraps = [each for each in self.tree.all(cst.Call) if self.names.call(each) == DATA_PARALLEL]
        told = [
            self.names.argument(each, word) for each in wraps for word in ("find_unused_parameters", "static_graph")
        ]
        given = any(arg is not None and self.names.constant(arg.value) is not False for arg in told)
        return given or any(map(self.names.has_star, wraps))
