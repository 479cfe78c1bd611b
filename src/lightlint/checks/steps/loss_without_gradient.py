from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Kind

# what gives numbers, indices or flags, over which nothing can be differentiated
_CUTTING = {"argmax", "argmin", "item", "detach", "numpy", "tolist", "eq", "ne", "gt", "lt", "ge", "le", "bincount"}
_KEEPING = {
    "abs", "clone", "contiguous", "cpu", "cuda", "double", "float", "flatten", "half", "long", "mean", "reshape", "squeeze",
    "sum", "to", "unsqueeze", "view", "type", "bool", "int",
}  # fmt: skip
_NUMPY = ("numpy.", "builtins.int", "builtins.float", "sklearn.")
_DEPTH = 6


class LossWithoutGradient(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if self.names.method(call) != "backward" or not isinstance(func, cst.Attribute):
            return
        sources = self.facts.reaching.sources(func.value)
        if not sources or self._is_leaf_wanted(func.value) or self.facts.gradients.may_be_off(call):
            return
        cuts = [self._cut(each, 0) for each in sources]
        first = cuts[0]
        if first is not None and all(each is not None for each in cuts):
            self.report(
                call,
                f"the loss hangs on `{self.code.text_of(first)}` alone, through which no gradient passes: no parameter gets one",
            )

    def _is_leaf_wanted(self, loss: cst.BaseExpression) -> bool:
        """Whether a value is no result at all: what `backward` starts from is a parameter or a plain variable."""
        return not isinstance(loss, (cst.Name, cst.Call))

    def _cut(self, value: cst.CSTNode | None, depth: int) -> cst.BaseExpression | None:
        """Where the graph of a value surely ends; None where some part may carry one, or there is nothing to cut."""
        if depth > _DEPTH or value is None:
            return None
        match value:
            case cst.Comparison():
                return value
            case cst.BinaryOperation():
                sides = [value.left, value.right]
                open_sides = [each for each in sides if not self._is_number(each)]
                cuts = [self._cut(each, depth + 1) for each in open_sides]
                return cuts[0] if cuts and all(each is not None for each in cuts) else None
            case cst.UnaryOperation(operator=cst.Minus()):
                return self._cut(value.expression, depth + 1)
            case cst.Name():
                found = self.facts.reaching.bindings(value)
                plain = bool(found) and all(each.kind is Kind.ASSIGN and not each.path for each in found)
                cuts = [self._cut(each.value, depth + 1) for each in found] if plain else []
                return cuts[0] if cuts and all(each is not None for each in cuts) else None
            case cst.Call():
                return self._of_call(value, depth)
        return None

    def _of_call(self, call: cst.Call, depth: int) -> cst.BaseExpression | None:
        name = self.names.of(call.func) or ""
        loss = self.facts.criteria.of(call)
        if loss is not None:
            differentiable_target = loss.target is not None and self._may_carry(loss.target)
            return None if differentiable_target else self._cut(loss.input, depth + 1)
        helper = self.hooks.callee(call)
        if helper is not None:
            cuts = [self._cut(each, depth + 1) for each in self.values.returns(helper)]
            return call if cuts and all(each is not None for each in cuts) else None
        if name.startswith("torch.") and name.rpartition(".")[2] in {"argmax", "argmin", "eq", "ne"}:
            return call
        if name.startswith("torch.") and name.rpartition(".")[2] in {"mean", "sum", "abs", "squeeze"} and call.args:
            return self._cut(call.args[0].value, depth + 1)
        if isinstance(call.func, cst.Attribute) and not name.startswith(("torch.", *_NUMPY)):
            method = call.func.attr.value
            if method in {"argmax", "argmin"}:
                return call
            if method in _KEEPING:
                return self._cut(call.func.value, depth + 1)
        return None

    def _is_number(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, (cst.Integer, cst.Float)):
            return True
        sized = isinstance(value, cst.Call) and self.names.call(value) == "builtins.len"
        return sized or isinstance(self.names.constant(value), (int, float))

    def _may_carry(self, target: cst.BaseExpression) -> bool:
        """Whether a target may carry a graph: anything but an item of a batch, as it is or in another shape or type."""
        while isinstance(target, cst.Call):
            name = self.names.of(target.func) or ""
            if name.rpartition(".")[2] in {"one_hot", "zeros_like", "ones_like"} and name.startswith("torch."):
                return False
            if self.names.method(target) not in _KEEPING or not isinstance(target.func, cst.Attribute):
                return True
            target = target.func.value
        if not isinstance(target, cst.Name):
            return True
        found = self.facts.reaching.bindings(target)
        for each in found:
            batch = each.kind is Kind.LOOP or (
                each.path and isinstance(each.value, (cst.Name, cst.Tuple, cst.GeneratorExp))
            )
            same = each.kind is Kind.ASSIGN and self._is_moved(each.value, each.path, target.value)
            if not batch and not same:
                return True
        return not found

    def _is_moved(self, value: cst.BaseExpression | None, path: tuple[int, ...], name: str) -> bool:
        """`y.to(device)` of the name itself, also as an item of a tuple."""
        for place in path:
            value = (
                value.elements[place].value if isinstance(value, cst.Tuple) and place < len(value.elements) else None
            )
        moved = isinstance(value, cst.Call) and self.names.method(value) in _KEEPING
        return moved and isinstance(value, cst.Call) and self.names.key(getattr(value.func, "value", None)) == name
