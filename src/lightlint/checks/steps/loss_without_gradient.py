from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Stepped
from lightlint.explore.queries import in_sight

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


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

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Passes that reach no parameter, over what hangs on indices and comparisons of what an optimizer trains."""
        for path in entry.paths:
            trained = {each for step in path.of(Stepped) if not step.optimizer.escaped for each in step.parameters}
            for event in path.of(Backward):
                if event.loss is None or any(each.parameter for each in event.parameters) or not in_sight([event.loss]):
                    continue
                cut = next(
                    (each for each in event.loss.cuts if each.how in _DISCRETE and each.parameters & trained), None
                )
                if cut is not None:
                    what = "a comparison" if cut.how == "comparison" else f"`{cut.how}`"
                    message = f"the loss hangs on {what} alone, through which no gradient passes: no parameter gets one"
                    yield Fault.at(event, message, cut.site)


_DISCRETE = frozenset(
    [
        "comparison",
        "argmax",
        "argmin",
        "round",
        "floor",
        "ceil",
        "sign",
        "eq",
        "ne",
        "gt",
        "lt",
        "ge",
        "le",
        "argsort",
        "long",
        "int",
        "bool",
        "nonzero",
        "multinomial",
    ]
)
