from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.code.bindings import Kind
from lightlint.facts.tensors.tensors import FACTORIES, KEEPING
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import rename

_MISSPELLED = {
    "require_grad", "required_grad", "requires_grads", "require_grads", "requiers_grad", "requres_grad", "require_gradient",
    "requires_gradient", "requires_gradients", "requied_grad",
}  # fmt: skip


_METHOD = "requires_grad_"
_SETTINGS = {"args", "cfg", "config", "opt", "options", "hparams", "conf", "cls"}


class RequiresGradTypo(Check):
    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        target, assign = node.target, self.tree.parent(node)
        if not isinstance(target, cst.Attribute) or target.attr.value not in {_METHOD, *_MISSPELLED}:
            return
        word = target.attr.value
        hides = word == _METHOD
        if self.classes.is_self(target.value) or not isinstance(assign, cst.Assign):
            return
        if not self._is_flag(target.value, assign.value) or (not hides and self._is_read(word)):
            return
        if not hides and self.names.constant(assign.value) is False and self._has_no_gradient(target.value):
            name = self.code.text_of(target.value)
            message = f"`{word}` is an attribute that torch does not know; `{name}` has no gradient without it, too"
            self.report(target, message, tier=Tier.NOTE)
            return
        what = "a method, which this hides" if hides else "an attribute that torch does not know"
        self.report(
            target,
            f"`{word}` is {what}: `requires_grad` stays as it is",
            repair=Repair("write `requires_grad`", rename(self.code, target, "requires_grad"), Applicability.UNSAFE),
        )

    def visit_Call(self, call: cst.Call) -> None:
        if len(call.args) != 3 or self.names.call(call) != "builtins.setattr":
            return
        word = self.names.constant(call.args[1].value)
        if (
            not isinstance(word, str)
            or word not in _MISSPELLED
            or self._is_read(word)
            or not self._is_parameter(call.args[0].value)
        ):
            return
        self.report(call, f"`{word}` is an attribute that torch does not know: `requires_grad` stays as it is")

    def _is_read(self, name: str) -> bool:
        """Whether the file uses an attribute of that name of its own."""
        attributes = [each for each in self.tree.all(cst.Attribute) if each.attr.value == name]
        return any(not isinstance(self.tree.parent(each), cst.AssignTarget) for each in attributes)

    def _is_flag(self, receiver: cst.BaseExpression, value: cst.BaseExpression) -> bool:
        """Whether a parameter is given something, or what is no plain settings object surely a truth value."""
        if self._is_parameter(receiver):
            return True
        last = self.names.key(receiver).rpartition(".")[2]
        if last in _SETTINGS or self.names.of(receiver) is not None:
            return False  # the class itself, which gets a method of one's own
        negated = isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Not)
        return negated or isinstance(value, cst.Comparison) or isinstance(self.names.constant(value), bool)

    def _has_no_gradient(self, receiver: cst.BaseExpression) -> bool:
        """Whether a name stands for new tensors that record nothing: `torch.zeros(n, d).float()`."""
        found = self.names.bindings.lookup(receiver) if isinstance(receiver, cst.Name) else []
        return bool(found) and all(self._is_plain(each.value, each.name) for each in found)

    def _is_plain(self, value: cst.BaseExpression | None, name: str) -> bool:
        """Whether a value is a new tensor, or what the name held before, in another shape or type."""
        while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            if self.names.call(value) in FACTORIES - {"torch.as_tensor"}:
                return self.names.argument(value, "requires_grad") is None and not self.names.has_star(value)
            if value.func.attr.value not in KEEPING:
                return False
            value = value.func.value
        return isinstance(value, cst.Name) and value.value == name

    def _is_parameter(self, receiver: cst.BaseExpression) -> bool:
        """Whether a name stands for each of `module.parameters()` in turn."""
        found = self.names.bindings.lookup(receiver) if isinstance(receiver, cst.Name) else []
        drawn = {self.names.method(each.value) if each.kind is Kind.LOOP else "" for each in found}
        return bool(drawn) and drawn <= {"parameters", "named_parameters"}
