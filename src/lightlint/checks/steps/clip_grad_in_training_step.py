from __future__ import annotations

import libcst as cst

from lightlint.check import Check

_CLIPS = {
    f"torch.nn.utils.{name}" for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grad_value")
}


class ClipGradInTrainingStep(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.of(call.func) or ""
        func = call.func
        own = (
            isinstance(func, cst.Attribute) and func.attr.value == "clip_gradients" and self.classes.is_self(func.value)
        )
        if name not in _CLIPS and not own:
            return
        facts = self.facts.optimization
        node = facts.step_class(call)
        if node is not None and facts.is_automatic(node) and not facts.backwards(node):
            method = self.names.method(call)
            self.report(
                call, f"`{method}` clips the gradients of the batch before: Lightning's backward pass comes later"
            )
