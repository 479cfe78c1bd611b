from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Clipped, Configured
from lightlint.explore.queries import in_sight, inside

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


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

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Clipping in a `training_step` whose backward pass is Lightning's."""
        for path in entry.paths:
            modules = [event.module for event in path.of(Configured) if event.automatic]
            by_hand = any(each.via != "lightning" and inside(each.where, "training_step") for each in path.of(Backward))
            for event in path.of(Clipped) if modules and in_sight(modules) and not by_hand else []:
                if inside(event.where, "training_step") and event.parameters:
                    message = "clips the gradients of the batch before: Lightning's backward pass comes later"
                    yield Fault.at(event, message)
