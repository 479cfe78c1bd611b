from __future__ import annotations

import libcst as cst

from lightlint.check import Check


class OptimizerStepInAutomatic(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "step" or call.args:
            return
        facts = self.facts.optimization
        if not facts.from_optimizers(func.value):
            return
        node = facts.step_class(call)
        if node is not None and facts.is_automatic(node) and not facts.backwards(node):
            self.report(
                call, "a second step per batch, with the gradients of the batch before: Lightning steps here by itself"
            )
