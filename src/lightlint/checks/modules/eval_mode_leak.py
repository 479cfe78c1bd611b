from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check
from lightlint.facts.classes import CALLBACK, MODULE

_HOOKS = {"training_step", "on_train_batch_start", "on_train_batch_end", "on_train_epoch_start", "on_train_epoch_end"}
_HOOKS |= {"on_before_zero_grad", "on_after_backward", "on_before_optimizer_step", "on_train_start", "on_fit_start"}
_ENDS = {"on_train_batch_end", "on_train_epoch_end"}
_NO_RUN = {"eval", "train", "log", "log_dict", "print", "parameters", "named_parameters", "to", "state_dict"}
_FROZEN = re.compile(r"freeze|frozen|requires_grad")


class EvalModeLeak(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "eval" or call.args:
            return
        function, node = self.tree.function(call), self.tree.enclosing_class(call)
        if function is None or node is None or not self.classes.is_a(node, MODULE, CALLBACK):
            return
        key = self.names.key(func.value)
        hooks = {hook.name for hook in self.hooks.reached(function)} & _HOOKS
        if (
            not hooks
            or not self._is_trained(func.value, node, hooks)
            or not self.facts.lightning.may_be_at_least("2.2")
        ):
            return
        family = self.facts.optimization.family(node)
        if family and self._is_used(call, key) and not any(self._may_restore(each) for each in family):
            self.report(call, f"`{key}` stays in eval mode for the rest of the training")

    def _is_trained(self, receiver: cst.BaseExpression, node: cst.ClassDef, hooks: set[str]) -> bool:
        """Whether an expression is the module that is trained, or a part of it that is not frozen on purpose."""
        if self.classes.is_self(receiver):
            return self.classes.is_a(node, MODULE)
        if isinstance(receiver, cst.Name):
            return receiver.value == "pl_module" and self.classes.is_a(node, CALLBACK)
        is_part = isinstance(receiver, cst.Attribute) and self.classes.is_self(receiver.value)
        if not is_part or not self.classes.is_a(node, MODULE):
            return False
        if not hooks <= _ENDS and not self._is_run_without_grad(receiver):  # batch norm may be frozen that way
            return False
        if _FROZEN.search(self.code.text_of(node)):
            return False
        key, gradients = self.names.key(receiver), self.facts.gradients
        calls = self.facts.optimization.calls(node)
        return any(self.names.key(each.func) == key and not gradients.may_be_off(each) for each in calls)

    def _is_run_without_grad(self, receiver: cst.BaseExpression) -> bool:
        """Whether the function that puts a part in eval mode runs it there, each time without recording a graph."""
        key = self.names.key(receiver)
        calls = [
            each for each in self.tree.own(self.tree.owner(receiver), cst.Call) if self.names.key(each.func) == key
        ]
        return bool(calls) and all(self._is_without_grad(each) for each in calls)

    def _is_without_grad(self, call: cst.Call) -> bool:
        for above in self.tree.ancestors(call):
            switches = [each.item for each in above.items] if isinstance(above, cst.With) else []
            switches += [each.decorator for each in above.decorators] if isinstance(above, cst.FunctionDef) else []
            spelled = [self.names.of(each.func if isinstance(each, cst.Call) else each) for each in switches]
            if {"torch.no_grad", "torch.inference_mode"} & set(spelled):
                return True
        return False

    def _is_used(self, call: cst.Call, key: str) -> bool:
        """Whether the function runs the module behind the call: it is put in eval mode for that, not for good."""
        owner = self.tree.owner(call)
        runs = [each for each in self.tree.own(owner, cst.Call) if self._runs(each, key)]
        return self.facts.flow(owner).reaches(call, runs)

    def _runs(self, call: cst.Call, key: str) -> bool:
        """Whether a call runs the module: itself, a part of it, or a method of this file on it."""
        spelled = self.names.key(call.func)
        if spelled in {key, f"{key}.forward"}:
            return True
        callee = self.hooks.callee(call)
        own = callee is not None and self.hooks.of(callee) is None
        other = key != "self" and self.names.method(call) not in _NO_RUN
        return spelled.startswith(f"{key}.") and (own or other or self.values.is_module(call.func))

    def _may_restore(self, node: cst.ClassDef) -> bool:
        """Whether a class sets modes itself."""
        if "train" in self.classes.methods(node):
            return True
        calls = self.tree.within(node, cst.Call)
        return any(
            isinstance(each.func, cst.Attribute) and each.func.attr.value in {"train", "_set_mode"} for each in calls
        )
