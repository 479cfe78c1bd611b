from __future__ import annotations

import libcst as cst

from lightlint.check import Check


class ForwardOutsideNoSync(Check):
    def visit_With(self, block: cst.With) -> None:
        calls = [call for item in block.items for call in self.tree.within(item, cst.Call)]
        for call in calls:
            model = self._model(call)
            if not model or not self.facts.steps.runs(block.body, self.loops.is_backward):
                continue
            inside = any(
                self.names.key(each) == model for each in self.tree.within(block.body, cst.Name, cst.Attribute)
            )
            owner = self.tree.owner(block)
            forwards = [each for each in self.tree.own(owner, cst.Call) if self.names.key(each.func) == model]
            helped = any(self.facts.steps.callee(each) is not None for each in self.tree.own(block.body, cst.Call))
            if not inside and not helped and any(not self.tree.contains(block, each) for each in forwards):
                self.report(
                    call, f"`{model}` ran forward before this: gradients are exchanged in each step all the same"
                )

    def _model(self, call: cst.Call) -> str:
        """The model that `model.no_sync()` or `fabric.no_backward_sync(model)` speaks of."""
        method = self.names.method(call)
        if method == "no_sync" and isinstance(call.func, cst.Attribute):
            return self.names.key(call.func.value)
        return self.names.key(call.args[0].value) if method == "no_backward_sync" and call.args else ""
