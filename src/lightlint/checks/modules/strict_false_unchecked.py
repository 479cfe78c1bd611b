from __future__ import annotations

import libcst as cst

from lightlint.check import Check

_FITS = {"pop", "update"}


class StrictFalseUnchecked(Check):
    def visit_Expr(self, statement: cst.Expr) -> None:
        call = statement.value
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return
        strict, model = self.names.argument(call, "strict", 1), call.func.value
        if self.names.method(call) != "load_state_dict" or strict is None or not call.args:
            return
        if self.names.constant(strict.value) is not False or isinstance(model, cst.Call):
            return  # `super().load_state_dict(...)` is a step of somebody else's load
        if not self._is_fitted(call.args[0].value) and not self._is_compared(call, model):
            self.report(strict, f"keys that do not fit `{self.code.text_of(model)}` are passed over and nobody looks")

    def _is_fitted(self, given: cst.BaseExpression) -> bool:
        """Whether the state was filtered, completed or cut before, or comes from a module."""
        if isinstance(given, (cst.DictComp, cst.Dict)) or self.names.method(given) == "state_dict":
            return True
        key, owner = self.names.key(given), self.tree.owner(given)
        changed = [
            each.func.value
            for each in self.tree.own(owner, cst.Call)
            if isinstance(each.func, cst.Attribute) and each.func.attr.value in _FITS
        ]
        changed += [
            each.value for cut in self.tree.own(owner, cst.Del) for each in self.tree.within(cut, cst.Subscript)
        ]
        return bool(key) and key in {self.names.key(each) for each in changed}

    def _is_compared(self, call: cst.Call, model: cst.BaseExpression) -> bool:
        """Whether the function asks for the module's own keys."""
        own = self.names.key(model)
        return any(
            each.func.attr.value == "state_dict" and self.names.key(each.func.value) == own
            for each in self.tree.own(self.tree.owner(call), cst.Call)
            if isinstance(each.func, cst.Attribute)
        )
