from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.fixes.edits import rename

_MISSPELLED = {
    "require_grad", "required_grad", "requires_grads", "require_grads", "requiers_grad", "requres_grad", "require_gradient",
    "requires_gradient", "requires_gradients", "requied_grad",
}  # fmt: skip


class RequiresGradTypo(Check):
    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        target = node.target
        if not isinstance(target, cst.Attribute) or target.attr.value not in _MISSPELLED:
            return
        if self.classes.is_self(target.value) or self._is_read(target.attr.value) or not self._is_flag(node):
            return
        self.report(
            target,
            f"`{target.attr.value}` is an attribute that torch does not know: `requires_grad` stays as it is",
            repair=Repair("write `requires_grad`", rename(self.code, target, "requires_grad")),
        )

    def _is_read(self, name: str) -> bool:
        """Whether the file uses an attribute of that name of its own."""
        attributes = [each for each in self.tree.all(cst.Attribute) if each.attr.value == name]
        return any(not isinstance(self.tree.parent(each), cst.AssignTarget) for each in attributes)

    def _is_flag(self, node: cst.AssignTarget) -> bool:
        """Whether the value is a truth value and the receiver no plain settings object."""
        assign = self.tree.parent(node)
        value = self.names.constant(assign.value) if isinstance(assign, cst.Assign) else None
        receiver = self.names.key(node.target.value) if isinstance(node.target, cst.Attribute) else ""
        last = receiver.rpartition(".")[2]
        return isinstance(value, bool) and last not in {
            "args",
            "cfg",
            "config",
            "opt",
            "options",
            "hparams",
            "conf",
            "cls",
        }
