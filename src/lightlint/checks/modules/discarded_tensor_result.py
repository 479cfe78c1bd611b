from __future__ import annotations

from dataclasses import replace

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.failures import is_expected
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, RawEdit

_MOVING = {"to", "cuda", "cpu", "float", "half", "double", "long", "type"}
_TENSOR_ONLY = {
    "unsqueeze",
    "squeeze",
    "permute",
    "view",
    "reshape",
    "clamp",
    "detach",
    "contiguous",
    "flatten",
    "transpose",
    "flip",
    "fliplr",
    "flipud",
    "roll",
    "rot90",
    "swapaxes",
    "movedim",
    "moveaxis",
}

# methods of tensors and arrays that no library has in place
_NEVER_IN_PLACE = {"unsqueeze", "squeeze", "permute"}
_REORDERING = (
    "flip", "fliplr", "flipud", "roll", "rot90", "transpose", "swapaxes", "moveaxis", "squeeze", "reshape", "ravel", "clip",
)  # fmt: skip
_FUNCTIONS = {f"numpy.{name}" for name in (*_REORDERING, "expand_dims")}
_FUNCTIONS |= {f"torch.{name}" for name in (*_REORDERING, "unsqueeze", "permute", "movedim", "flatten", "clamp")}


class DiscardedTensorResult(Check):
    def visit_Expr(self, statement: cst.Expr) -> None:
        call = statement.value
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return
        receiver, method = call.func.value, call.func.attr.value
        if self.names.call(call) in _FUNCTIONS:
            self._judge_function(statement, call)
            return
        if method not in _MOVING | _TENSOR_ONLY or not isinstance(receiver, cst.Name):
            return
        new = method in _NEVER_IN_PLACE and self._is_computed(receiver)
        if not new and not self._is_tensor(receiver) and not self.facts.results.is_tensor(receiver):
            return
        if self._is_wanted(statement, call):
            return
        self.report(
            call,
            f"`{receiver.value}.{method}()` returns a new tensor, which is dropped: `{receiver.value}` stays as it is",
            repair=self._repair(statement, receiver.value),
        )

    def _judge_function(self, statement: cst.Expr, call: cst.Call) -> None:
        """`np.fliplr(image)` where the image is used afterwards: it gives another array or tensor."""
        key = self.names.key(call.args[0].value) if call.args else ""
        into = self.names.argument(call, "out", 3) is not None or self.names.has_star(call)
        if not key or into or not self._is_used_after(call, key) or self._is_wanted(statement, call):
            return
        kind = "array" if (self.names.call(call) or "").startswith("numpy.") else "tensor"
        self.report(
            call,
            f"`{self.code.text_of(call.func)}()` returns a new {kind}, which is dropped: `{key}` stays as it is",
            repair=self._repair(statement, key) if "." not in key else None,  # a parameter takes no tensor
        )

    def _is_used_after(self, call: cst.Call, key: str) -> bool:
        names = self.tree.own(self.tree.owner(call), cst.Name, cst.Attribute)
        return any(
            self.names.key(each) == key and self.tree.order(each) > self.tree.order(call)
            for each in names
            if not self.tree.contains(call, each)
        )

    def _is_wanted(self, statement: cst.Expr, call: cst.Call) -> bool:
        """Whether the statement may stand for what it raises, or shows: a cell shows its last expression."""
        shown = self.facts.source.cell_at(self.facts.span(statement)[0]) is not None
        return shown or is_expected(self.tree, self.names, call)

    def _repair(self, statement: cst.Expr, name: str) -> Repair:
        start = self.facts.span(statement)[0]
        return Repair("assign the result", Draft((RawEdit(start, start, f"{name} = "),)), Applicability.UNSAFE)

    def _is_tensor(self, name: cst.Name) -> bool:
        """Whether a name surely is a tensor: made by torch, or an item of a loader's batch."""
        found = self.names.bindings.lookup(name)
        if not found:
            return False
        for each in found:
            if each.kind is Kind.LOOP:
                if not self._is_item(each):
                    return False
            elif each.kind is Kind.ASSIGN and each.path and isinstance(each.value, cst.Name):
                drawn = self.names.bindings.lookup(each.value)  # `x, y = batch`
                if len(drawn) != 1 or not self._is_item(replace(drawn[0], path=(*drawn[0].path, *each.path))):
                    return False
            elif each.kind is not Kind.ASSIGN or not self._is_made(each.value, each.path):
                return False
        return True

    def _is_item(self, drawn: Binding) -> bool:
        """Whether a loop draws an item of a loader's batch, which it or `enumerate` counts."""
        if drawn.kind is not Kind.LOOP or drawn.value is None:
            return False
        source, path = drawn.value, drawn.path
        if self.names.call(source) == "builtins.enumerate" and isinstance(source, cst.Call) and path[:1] == (1,):
            source, path = source.args[0].value, path[1:]
        return bool(path) and self.values.is_loader(source)

    def _is_computed(self, name: cst.Name) -> bool:
        """Whether a name holds what a call or a batch gave, and no object of a class in sight with methods of its own."""
        found = self.names.bindings.lookup(name)
        plain = all(each.kind is Kind.LOOP or isinstance(each.value, cst.Call) for each in found)
        known = self.values.origins(name)
        return bool(found) and plain and not any(self.classes.local(each.name) for each in known)

    def _is_made(self, value: cst.BaseExpression | None, path: tuple[int, ...]) -> bool:
        return self.facts.tensors.is_made_here(value, path) or (
            not path and (self.names.call(value) or "") in {"torch.cat", "torch.stack", "torch.matmul"}
        )
