from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.finding import Tier
from lightlint.fixes.edits import Draft, replace
from lightlint.values.training import Tensor

# methods that tensors have, and arrays, numbers and lists do not
if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_OF_SCORES = {"softmax", "log_softmax", "requires_grad_"}  # methods of what training computes
_METHODS = {"detach", "unsqueeze", "cuda", "contiguous", *_OF_SCORES}
_FUNCTIONS = {
    f"torch.{name}" for name in ("cat", "stack", "argmax", "softmax", "sigmoid", "matmul", "mm", "where", "exp")
}
_WARNS = "`torch.tensor()` of a tensor warns each time it runs, and is a copy without its graph all the same: use `.detach().clone()`"


class TensorCopyConstruct(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != "torch.tensor" or not call.args or call.args[0].star or call.args[0].keyword:
            return
        given = call.args[0].value
        sources = self.facts.reaching.sources(given)
        if sources and all(map(self._is_tensor, sources)):
            text = self.code.text_of(given)
            lost = f"`torch.tensor()` copies `{text}` without its graph, so no gradient goes back through it: use `.clone()`"
            cuts = any(map(self._may_train, sources))
            repair = Repair("copy it with `detach().clone()`", self._draft(call, given))
            self.report(call, lost if cuts else _WARNS, repair=repair, tier=None if cuts else Tier.NOTE)

    def _may_train(self, value: cst.BaseExpression) -> bool:
        """Whether a tensor is a loss or scores, which gradients are meant to go back through."""
        if not isinstance(value, cst.Call):
            return False
        return self.facts.criteria.of(value) is not None or self.names.method(value) in _OF_SCORES

    def _is_tensor(self, value: cst.BaseExpression) -> bool:
        """Whether a value surely is a tensor."""
        if not isinstance(value, cst.Call):
            return False
        name = self.names.of(value.func) or ""
        if name in _FUNCTIONS or self.facts.tensors.is_made_here(value):
            return True
        if self.facts.criteria.of(value) is not None:
            return True
        return isinstance(value.func, cst.Attribute) and not name and value.func.attr.value in _METHODS

    def _draft(self, call: cst.Call, given: cst.BaseExpression) -> Draft | None:
        if len(call.args) != 1 or not isinstance(given, (cst.Name, cst.Call, cst.Attribute)):
            return None
        return replace(self.code, call, f"{self.code.text_of(given)}.detach().clone()")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """`torch.tensor` of what surely is a tensor: computed by a module, or made by torch."""
        for event in entry.calls.get("torch.tensor", ()):
            given = event.argument("data", 0)
            if (
                isinstance(given, Tensor)
                and (given.graph or given.traits or given.origin is not None)
                and not given.escaped
            ):
                lost = "`torch.tensor()` copies a tensor without its graph, so no gradient goes back through it: use `.clone()`"
                cuts = bool(given.graph or given.parameters)
                yield Fault.of(event, lost if cuts else _WARNS, tier=None if cuts else Tier.NOTE)
