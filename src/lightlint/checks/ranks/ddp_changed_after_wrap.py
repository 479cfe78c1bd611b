from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import dotted_name
from lightlint.facts.freezing import Switch, freezes, switch, switched_by
from lightlint.facts.processes import DATA_PARALLEL

_CASTS = {"half", "double", "bfloat16"}
_ADDING = {"add_module", "register_module", "register_parameter"}


class DdpChangedAfterWrap(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        target = assign.targets[0].target if len(assign.targets) == 1 else None
        if not isinstance(target, cst.Attribute):
            return
        if target.attr.value == "requires_grad":
            self._judge_switch(target, switch(self.facts, assign))
        elif self._inner(target.value) and (self.values.is_module(assign.value) or self._is_parameter(assign.value)):
            self._tell(target, target, "is new to a model that DDP has wrapped: its gradients are not exchanged")

    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute):
            return
        if func.attr.value in _ADDING and self._inner(func.value):
            self._tell(call, func, "adds to a model that DDP has wrapped: its gradients are not exchanged")
        elif func.attr.value in _CASTS and not call.args and self.facts.data_parallel.is_of_wrapped(func.value):
            self._tell(call, func, "replaces parameters that DDP has wrapped: gradients are not exchanged any more")
        elif func.attr.value == "requires_grad_":
            self._judge_switch(call, switch(self.facts, call))
        elif (method := self._method(func)) is not None:
            for each in switched_by(self.facts, call, method):
                whole = func.value if isinstance(each.module, cst.Name) else None  # `self`
                self._judge(call, func, whole, each.state)

    def _judge_switch(self, at: cst.CSTNode, made: Switch | None) -> None:
        """Parameters that begin or end to be trained after the wrapping."""
        value = made.module if made is not None else None
        if made is None or not isinstance(value, (cst.Name, cst.Attribute, cst.Subscript)):
            return
        if self.facts.data_parallel.is_of_wrapped(value):
            self._judge(at, value, value, made.state)
        elif not isinstance(value, cst.Name) and self._inner(value.value):
            self._judge(at, value, None, made.state)

    def _judge(self, at: cst.CSTNode, named: cst.BaseExpression, whole: cst.BaseExpression | None, state: str) -> None:
        """A switch of the `whole` model, or of a part of one; a whole one may be off for a while, as the two of a GAN."""
        link = "switches a part that " if isinstance(at, cst.Call) and named is at.func else ""
        if state == "True" and (self._was_frozen() if whole is None else self._had_frozen(whole)):
            said = "was frozen when DDP wrapped it: its gradients are not exchanged"
        elif state == "False" and whole is None and not self._finds_unused():
            said = "is frozen after DDP has wrapped it, which waits for its gradients and raises"
        else:
            return
        self._tell(at, named, link + said)

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

    def _tell(self, at: cst.CSTNode, named: cst.CSTNode, said: str) -> None:
        """Report, unless the model is not trained after that, or wrapped anew first."""
        owner = self.tree.owner(at)
        wraps = [each for each in self.tree.own(owner, cst.Call) if self.names.call(each) == DATA_PARALLEL]
        again = bool(wraps) and self.facts.flow(owner).reaches(at, wraps)
        if not again and not self.facts.gradients.may_be_off(at) and self.facts.forwards.trains_after(at):
            self.report(at, f"`{self.code.text_of(named)}` {said}")

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

    def _had_frozen(self, model: cst.BaseExpression) -> bool:
        """Whether a model, or a part of it, surely was frozen in the function that wrapped it, before that."""
        key = self.names.key(model).removesuffix(".module")
        wraps = [each for each in self.tree.all(cst.Call) if self.names.call(each) == DATA_PARALLEL and each.args]
        for wrap in wraps:
            assign = self.tree.parent(wrap)
            if not isinstance(assign, cst.Assign) or self.names.key(assign.targets[0].target) != key:
                continue
            given = wrap.args[0].value
            while isinstance(given, cst.Call) and isinstance(given.func, cst.Attribute):  # `net.cuda()`
                given = given.func.value
            owner, root = self.tree.owner(wrap), dotted_name(given)
            flow = self.facts.flow(owner)
            for site in freezes(self.facts, owner, root) if root else ():
                if flow.reaches(site, [wrap]) and not flow.reaches(wrap, [site]):
                    return True
        return False

    def _method(self, func: cst.Attribute) -> cst.FunctionDef | None:
        """The method of this file's module inside a DDP model that is called; all that is wrapped has to be in sight."""
        name, models = func.attr.value, self.facts.data_parallel
        if all(each.name.value != name for each in self.tree.all(cst.FunctionDef)):
            return None
        if not models.is_inner(func.value) or not models.is_of_wrapped(func.value):
            return None
        wraps = [each for each in self.tree.all(cst.Call) if self.names.call(each) == DATA_PARALLEL and each.args]
        origins = [self.values.unwrapped(each.args[0].value) for each in wraps]
        nodes = {self.classes.local(each.name) for found in origins for each in found}
        methods = {self.classes.method(node, name) for node in nodes if node is not None} - {None}
        return methods.pop() if all(origins) and len(methods) == 1 else None

    def _finds_unused(self) -> bool:
        """Whether DDP is, or may be, told to look for parameters without a gradient."""
        wraps = [each for each in self.tree.all(cst.Call) if self.names.call(each) == DATA_PARALLEL]
        told = [
            self.names.argument(each, word) for each in wraps for word in ("find_unused_parameters", "static_graph")
        ]
        given = any(arg is not None and self.names.constant(arg.value) is not False for arg in told)
        return given or any(map(self.names.has_star, wraps))
