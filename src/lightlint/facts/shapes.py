"""What is sure of a tensor's dtype and shape: integers or one-hot rows, a flat row of values or a column of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.choices import Choice, Choices
from lightlint.facts.layouts import Layout
from lightlint.facts.samples import Samples

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_DEPTH = 8
_INTEGERS = {"torch.long": "int64", "torch.int64": "int64", "torch.int": "int32", "torch.int32": "int32"}
_MADE = {"torch.randint": "int64", "torch.LongTensor": "int64", "torch.IntTensor": "int32", "torch.argmax": "int64"}
_SAME_DTYPE = {
    "view",
    "reshape",
    "unsqueeze",
    "squeeze",
    "flatten",
    "cuda",
    "cpu",
    "detach",
    "clone",
    "contiguous",
    "t",
}
_SAME_SHAPE = {
    "abs", "clone", "contiguous", "cos", "cpu", "cuda", "detach", "double", "exp", "float", "half", "log", "long", "pow",
    "relu", "sigmoid", "sin", "square", "tanh", "to", "type",
}  # fmt: skip
_ELEMENTWISE = {
    "torch.nn.ReLU", "torch.nn.Sigmoid", "torch.nn.Tanh", "torch.nn.Softplus", "torch.nn.Identity", "torch.nn.Dropout",
}  # fmt: skip
_FACTORIES = {f"torch.{name}" for name in ("rand", "randn", "zeros", "ones", "empty")}


_CHOSEN = {Choice.KEPT: Layout.PICKED, Choice.GONE: Layout.REDUCED}


class Shapes:
    """Dtypes and shapes of the tensors of one file, where the text leaves no doubt."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names
        self._choices = Choices(facts)

    def integers(self, expression: cst.BaseExpression | None, depth: int = 0) -> str | None:
        """`int64`, `int32` or `one-hot` (rows of int64) for a value that surely is such a tensor."""
        if expression is None or depth > _DEPTH:
            return None
        if isinstance(expression, cst.Name):
            found = {
                self.integers(self._assigned(each), depth + 1) for each in self._facts.reaching.bindings(expression)
            }
            return found.pop() if len(found) == 1 else None
        if not isinstance(expression, cst.Call):
            return None
        name, method = self._names.of(expression.func) or "", self._names.method(expression)
        dtype = self._names.argument(expression, "dtype")
        if dtype is not None:
            return _INTEGERS.get(self._names.of(dtype.value) or "")
        if name == "torch.nn.functional.one_hot":
            return "one-hot"
        if name in _MADE:
            return _MADE[name]
        if name or not isinstance(expression.func, cst.Attribute):
            return None
        if method in {"long", "int"} and not expression.args:
            one_hot = self.integers(expression.func.value, depth + 1) == "one-hot"
            return "one-hot" if one_hot else {"long": "int64", "int": "int32"}[method]
        if method in {"to", "type"} and expression.args:
            given = expression.args[0].value
            known = _INTEGERS.get(self._names.of(given) or "")
            return known or (self.integers(expression.func.value, depth + 1) if self._is_device(given) else None)
        return self.integers(expression.func.value, depth + 1) if method in _SAME_DTYPE else None

    def layout(self, expression: cst.BaseExpression | None, depth: int = 0) -> Layout | None:
        """The layout of a value, None where that is not sure."""
        if expression is None or depth > _DEPTH:
            return None
        chosen = self._choices.of(expression)
        if chosen is not None:
            return _CHOSEN[chosen]
        match expression:
            case cst.Name():
                found = {self._of_binding(each, depth + 1) for each in self._facts.reaching.bindings(expression)}
                return found.pop() if len(found) == 1 else None
            case cst.BinaryOperation(left=left, right=cst.Integer() | cst.Float()):
                return self.layout(left, depth + 1)
            case cst.BinaryOperation(left=cst.Integer() | cst.Float(), right=right):
                return self.layout(right, depth + 1)
            case cst.BinaryOperation(left=left, right=right):
                sides = {self.layout(left, depth + 1), self.layout(right, depth + 1)}
                if Layout.REDUCED in sides and sides <= {Layout.REDUCED, Layout.FLAT, None}:
                    return Layout.REDUCED  # whatever else is added has no more than its dimensions, or spreads it
                return sides.pop() if len(sides) == 1 else None
            case cst.Call():
                return self._of_call(expression, depth)
        return None

    def _of_call(self, call: cst.Call, depth: int) -> Layout | None:
        name, method = self._names.of(call.func) or "", self._names.method(call)
        sizes = [self._size(arg) for arg in call.args if arg.keyword is None]
        if name in _FACTORIES and sizes and not self._names.has_star(call):
            if len(sizes) == 1:
                inner = call.args[0].value
                return Layout.FLAT if isinstance(inner, (cst.Integer, cst.Name)) and self._is_number(inner) else None
            return Layout.COLUMN if len(sizes) == 2 and sizes[1] == 1 else None
        if name in {"torch.linspace", "torch.arange"}:
            return Layout.FLAT
        if name in {"torch.sigmoid", "torch.sin", "torch.cos", "torch.relu", "torch.exp", "torch.unsqueeze"}:
            taken = self.layout(call.args[0].value, depth + 1) if call.args else None
            if name == "torch.unsqueeze":
                return Layout.COLUMN if taken is Layout.FLAT and sizes[1:] in ([1], [-1]) else None
            return taken
        if isinstance(call.func, cst.Attribute) and not name:
            before = call.func.value
            if method in {"view", "reshape"}:
                given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list) else sizes  # `view([-1, 1])`
                return Layout.FLAT if given == [-1] else Layout.COLUMN if given == [-1, 1] else None
            if method in {"flatten", "ravel"} and not call.args:
                return Layout.FLAT
            if method == "unsqueeze" and sizes in ([1], [-1]):
                return Layout.COLUMN if self.layout(before, depth + 1) is Layout.FLAT else None
            if method in _SAME_SHAPE:
                return self.layout(before, depth + 1)
        if self._facts.hooks.callee(call) is not None:
            return None
        found = {
            self._of_module(origin.name, origin.call, call, depth + 1)
            for origin in self._facts.values.origins(call.func)
        }
        return found.pop() if len(found) == 1 else None

    def _of_module(self, name: str, made: cst.Call | None, call: cst.Call, depth: int) -> Layout | None:
        """What a module gives, as `made` makes it."""
        if depth > _DEPTH:
            return None
        if name == "torch.nn.Linear" and made is not None:
            size = self._names.argument(made, "out_features", 1)
            return Layout.COLUMN if size is not None and self._names.constant(size.value) == 1 else None
        if name == "torch.nn.Sequential" and made is not None:
            return self._of_sequence(made, call, depth)
        if name in _ELEMENTWISE and call.args:
            return self.layout(call.args[0].value, depth + 1)
        node = self._facts.classes.local(name)
        forward = self._facts.classes.method(node, "forward") if node is not None else None
        returns = self._facts.values.returns(forward) if forward is not None and not forward.decorators else []
        found = {self.layout(each, depth + 1) for each in returns}
        return found.pop() if len(found) == 1 else None

    def _of_sequence(self, made: cst.Call, call: cst.Call, depth: int) -> Layout | None:
        for arg in reversed(made.args):
            inner = self._names.call(arg.value)
            if arg.star or inner is None or not isinstance(arg.value, cst.Call):
                return None
            if inner not in _ELEMENTWISE:
                return self._of_module(inner, arg.value, call, depth + 1) if inner == "torch.nn.Linear" else None
        return None

    def _of_binding(self, binding: Binding, depth: int) -> Layout | None:
        if binding.kind is Kind.LOOP and binding.value is not None:
            return Samples(self._facts).layout(binding.value, binding.path, depth)
        if binding.kind is Kind.PARAMETER:
            return self._of_parameter(binding, depth)
        if binding.kind is Kind.ASSIGN and binding.path and isinstance(binding.value, cst.Call):
            chosen = self._choices.of_part(binding.value, binding.path)
            return _CHOSEN[chosen] if chosen is not None else None
        return self.layout(self._assigned(binding), depth)

    def _of_parameter(self, binding: Binding, depth: int) -> Layout | None:
        """The layout of what every call of a function of this file gives for a parameter."""
        function = binding.scope
        if not isinstance(function, cst.FunctionDef) or self._facts.hooks.of(function) or depth > _DEPTH:
            return None
        given = [
            self._facts.values.given(function, each, binding.name)
            for each in self._facts.steps.calls_of.get(function, ())
        ]
        found = {self.layout(each, depth + 1) for each in given}
        return found.pop() if len(found) == 1 else None

    def _assigned(self, binding: Binding) -> cst.BaseExpression | None:
        return binding.value if binding.kind is Kind.ASSIGN and not binding.path else None

    def _size(self, arg: cst.Arg) -> object:
        return self._names.constant(arg.value)

    def _is_number(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression is a size; a tensor of one value is as good as a number."""
        size = self._names.constant(expression)
        return isinstance(size, int) and size != 1

    def _is_device(self, given: cst.BaseExpression) -> bool:
        """Whether the argument of `to` is a device, by constructor, literal or name."""
        value, key = self._names.constant(given), self._names.key(given)
        made = self._names.call(given) == "torch.device"
        return made or isinstance(value, str) or key.rpartition(".")[2] in {"device", "dev"}
