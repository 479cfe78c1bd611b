from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check
from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.lightning.hooks import TRAINING_STEP, Hook, Owner
from lightlint.facts.objects.decorations import decorations

_OFF = {"torch.no_grad", "torch.inference_mode"}
_ON = {"enable_grad", "set_grad_enabled", "requires_grad", "requires_grad_", "inference_mode"}


class TrainingStepWithoutGrad(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        node = self.tree.class_of(function)
        if node is None or self.hooks.of(function) != Hook(Owner.MODULE, TRAINING_STEP):
            return
        facts, switches = self.facts.optimization, list(self._switches(function))
        if not switches or not self._stays_off(function):
            return
        if not facts.is_automatic(node) and not (facts.is_manual(node) and facts.backwards(node)):
            return
        if self._returns_loss(function) or not facts.is_automatic(node):
            for switch in switches:
                name = self.code.text_of(switch).removesuffix("()")
                self.report(switch, f"`{name}` on `training_step`: its loss has no graph, the backward pass raises")

    def _switches(self, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
        """The decorators that turn autograd off for the whole step."""
        for called in decorations(self.tree, function):
            name = self.names.call(called) if isinstance(called, cst.Call) else self.names.of(called)
            if name in _OFF and not (isinstance(called, cst.Call) and called.args):
                yield called

    def _stays_off(self, function: cst.FunctionDef) -> bool:
        """Whether nothing in the step turns autograd on again, or asks for the gradients of a tensor of its own."""
        names = self.tree.within(function.body, cst.Name)
        return not any(each.value in _ON for each in names)

    def _returns_loss(self, function: cst.FunctionDef) -> bool:
        returns = self.tree.own(function.body, cst.Return)
        return any(each.value is not None and dotted_name(each.value) != "None" for each in returns)
