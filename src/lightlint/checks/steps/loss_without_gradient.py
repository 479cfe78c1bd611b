from __future__ import annotations

import libcst as cst

from lightlint.check import Check


class LossWithoutGradient(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if self.names.method(call) != "backward" or not isinstance(func, cst.Attribute):
            return
        if not isinstance(func.value, (cst.Name, cst.Call)) or self._looks_at_gradients(call):
            return  # a parameter or a plain variable is no result
        end = self.facts.graphless.of(func.value)
        if end is not None and end.cut is not None and not self.facts.gradients.may_be_off(call):
            self.report(
                call,
                f"the loss hangs on `{self.code.text_of(end.cut)}` alone, through which no gradient passes: no parameter gets one",
            )

    def _looks_at_gradients(self, call: cst.Call) -> bool:
        """Whether a function sets `requires_grad` on a tensor and reads its `grad`: it asks for the gradient of flags."""
        owner = self.tree.owner(call)
        flags = any(self.names.method(each) == "requires_grad_" for each in self.facts.updates.own(owner))
        return flags and any(each.attr.value == "grad" for each in self.tree.own(owner, cst.Attribute))
