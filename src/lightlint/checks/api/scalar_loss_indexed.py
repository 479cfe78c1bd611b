from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Kind
from lightlint.facts.compat import is_versioned
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace

_LOSSES = (
    *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "kl_div"),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits"),
)
_FUNCTIONS = {f"torch.nn.functional.{name}" for name in _LOSSES}
_CLASSES = {
    f"torch.nn.{name}"
    for name in ("CrossEntropyLoss", "NLLLoss", "MSELoss", "L1Loss", "SmoothL1Loss", "BCELoss", "BCEWithLogitsLoss")
}
_SHAPING = {"reduction", "reduce", "size_average"}


class ScalarLossIndexed(Check):
    def visit_Subscript(self, subscript: cst.Subscript) -> None:
        index = subscript.slice[0].slice
        data = subscript.value
        first = isinstance(index, cst.Index) and self.names.constant(index.value) == 0
        if len(subscript.slice) != 1 or not first or not isinstance(data, cst.Attribute) or data.attr.value != "data":
            return
        if isinstance(data.value, cst.Name) and self._is_scalar_name(data.value):
            if is_versioned(self.facts, subscript):
                return
            name = data.value.value
            draft = replace(self.code, subscript, f"{name}.item()")
            repair = Repair("write `.item()`", draft, Applicability.UNSAFE)
            self.report(subscript, f"`{name}` has no dimension to index: an IndexError", repair=repair)

    def _is_scalar_name(self, name: cst.Name) -> bool:
        found = self.names.bindings.lookup(name)
        return bool(found) and all(
            each.kind is Kind.ASSIGN and not each.path and self._is_scalar(each.value) for each in found
        )

    def _is_scalar(self, value: cst.CSTNode | None) -> bool:
        """Whether a value surely is a tensor without dimensions: a loss of torch that is averaged."""
        if isinstance(value, cst.BinaryOperation):
            sides = (value.left, value.right)
            scalars = [self._is_scalar(side) for side in sides]
            numbers = [isinstance(self.names.constant(side), (int, float)) for side in sides]
            return any(scalars) and all(map(any, zip(scalars, numbers, strict=True)))
        if not isinstance(value, cst.Call):
            return False
        if self.names.call(value) in _FUNCTIONS:
            return self._is_averaged(value)
        origins = self.values.origins(value.func)
        return bool(origins) and all(
            each.name in _CLASSES and each.call is not None and self._is_averaged(each.call) for each in origins
        )

    def _is_averaged(self, call: cst.Call) -> bool:
        given = {arg.keyword.value for arg in call.args if arg.keyword}
        return not given & _SHAPING and not self.names.has_star(call)
