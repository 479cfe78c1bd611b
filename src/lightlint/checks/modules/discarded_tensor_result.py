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
}

# methods of tensors and arrays that no library has in place
_NEVER_IN_PLACE = {"unsqueeze", "squeeze", "permute"}


class DiscardedTensorResult(Check):
    def visit_Expr(self, statement: cst.Expr) -> None:
        call = statement.value
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return
        receiver, method = call.func.value, call.func.attr.value
        if method not in _MOVING | _TENSOR_ONLY or not isinstance(receiver, cst.Name):
            return
        new = method in _NEVER_IN_PLACE and self._is_computed(receiver)
        if not new and not self._is_tensor(receiver) and not self.facts.results.is_tensor(receiver):
            return
        if is_expected(self.tree, self.names, call):
            return
        if self.facts.source.cell_at(self.facts.span(statement)[0]) is not None:
            return  # the last expression of a cell is shown
        edit = RawEdit(self.facts.span(statement)[0], self.facts.span(statement)[0], f"{receiver.value} = ")
        self.report(
            call,
            f"`{receiver.value}.{method}()` returns a new tensor, which is dropped: `{receiver.value}` stays as it is",
            repair=Repair("assign the result", Draft((edit,)), Applicability.UNSAFE),
        )

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
