from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.classes import MODULE


class ToggleWithoutUntoggle(Check):
    def visit_Call(self, call: cst.Call) -> None:
        node = self.tree.enclosing_class(call)
        if not self._is(call, "toggle_optimizer") or node is None or not self.classes.is_a(node, MODULE):
            return
        family, owner = self.facts.optimization.family(node), self.tree.function(call)
        if not family or owner is None or not self.facts.optimization.is_manual(node) or not call.args:
            return
        calls = [each for part in family for each in self.tree.within(part, cst.Call)]
        frees = [each for each in calls if self._is(each, "untoggle_optimizer")]
        name = self.code.text_of(call.args[0].value)
        if not frees:
            self.report(call, f"nothing in `{node.name.value}` untoggles `{name}`: the other parameters stay frozen")
            return
        own = [each for each in frees if self.tree.function(each) is owner]
        flow = self.facts.flow(owner)
        returns = self.tree.own(owner.body, cst.Return)
        tests = set(self.facts.conditions(call))  # others may untoggle under the same tests again
        sure = [each for each in returns if tests <= set(self.facts.conditions(each))]
        exits = [each for each in sure if flow.reaches(call, [each], avoiding=own)]
        if own and exits and flow.reaches(call, own) and self._is_matched(call, own):
            self.report(call, f"a `return` leaves `{name}` toggled: the other parameters stay frozen")

    def _is_matched(self, call: cst.Call, frees: list[cst.Call]) -> bool:
        """Whether the optimizer toggled is one that the function untoggles by the same name."""
        key = self.names.key(call.args[0].value)
        return bool(key) and any(each.args and self.names.key(each.args[0].value) == key for each in frees)

    def _is(self, call: cst.Call, method: str) -> bool:
        func = call.func
        return isinstance(func, cst.Attribute) and func.attr.value == method and self.classes.is_self(func.value)
