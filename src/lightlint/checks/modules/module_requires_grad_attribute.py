from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, RawEdit


class ModuleRequiresGradAttribute(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        if len(assign.targets) != 1:
            return
        target = assign.targets[0].target
        if not isinstance(target, cst.Attribute) or target.attr.value != "requires_grad":
            return
        if not self.values.is_module(target.value) or self._knows_it(target.value):
            return
        receiver = self.code.text_of(target.value)
        self.report(
            target,
            f"`requires_grad` of a module is an attribute that nothing reads: the parameters of `{receiver}` stay as they are",
            repair=self._repair(assign, receiver),
        )

    def _knows_it(self, module: cst.BaseExpression) -> bool:
        """Whether the module's class has a meaning for the attribute: a property, or code that reads it."""
        origins = self.values.origins(module)
        local = [node for each in origins if (node := self.classes.local(each.name)) is not None]
        outside = any(not self.classes.local(o.name) and not o.name.startswith(("torch", "timm")) for o in origins)
        return outside or any(
            self.classes.is_self(each.value) and each.attr.value == "requires_grad"
            for node in local
            for each in self.tree.within(node, cst.Attribute)
        ) or any(self.classes.has_method(node, "requires_grad") for node in local)  # fmt: skip

    def _repair(self, assign: cst.Assign, receiver: str) -> Repair | None:
        line = self.tree.parent(assign)
        if not isinstance(line, cst.SimpleStatementLine) or self.names.constant(assign.value) not in (True, False):
            return None
        value = self.code.text_of(assign.value)
        call = RawEdit(*self.facts.span(assign), f"{receiver}.requires_grad_({value})")
        return Repair("call `requires_grad_()`", Draft((call,)), Applicability.UNSAFE)
