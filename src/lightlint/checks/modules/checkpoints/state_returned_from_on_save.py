from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.lightning.hooks import Owner
from lightlint.facts.lightning.overrides import is_changed
from lightlint.finding import Tier

_HOOK = "on_save_checkpoint"
_IGNORED = f"Lightning ignores what `{_HOOK}` returns: this state is in no checkpoint"
_RAISES = f"since Lightning 1.8 a callback may return nothing from `{_HOOK}`: saving the first checkpoint raises"
_IGNORED_SINCE = "2.0"


class StateReturnedFromOnSave(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        hook = self.hooks.of(function)
        node = self.tree.class_of(function)
        params = [*function.params.posonly_params, *function.params.params]
        if hook is None or hook.name != _HOOK or node is None or not params or is_changed(self.facts, function):
            return
        if hook.owner is Owner.CALLBACK and not self._is_ignored(node):
            return
        checkpoint = params[-1].name.value
        if any(each.value == checkpoint for each in self.tree.within(function.body, cst.Name)) or self._is_called():
            return
        for statement in self.tree.own(function.body, cst.Return):
            if statement.value is not None and self._is_state(statement.value):
                raises = hook.owner is Owner.CALLBACK and not self.facts.lightning.may_be_at_least(_IGNORED_SINCE)
                self.report(statement, _RAISES if raises else _IGNORED, tier=Tier.ERROR if raises else None)

    def _is_ignored(self, node: cst.ClassDef) -> bool:
        """Whether the target ignores what a callback returns, and the class does not keep its state in the new way besides."""
        return self.facts.lightning.surely_at_least("1.8") and not self.classes.has_method(node, "state_dict")

    def _is_called(self) -> bool:
        """Whether code of this file calls the hook itself and may use what it returns."""
        return any(self.names.method(call) == _HOOK for call in self.tree.all(cst.Call))

    def _is_state(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, cst.Dict):
            return bool(value.elements)
        return self.names.constant(value) is UNKNOWN
