"""Which activation a value went through last: softmax, log_softmax, sigmoid, or none since a linear layer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.across import module_elsewhere
from lightlint.facts.bindings import Kind

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_FUNCTIONS = {
    f"{room}.{name}": name
    for room in ("torch", "torch.nn.functional", "torch.special")
    for name in ("softmax", "log_softmax", "sigmoid")
}
_FUNCTIONS |= {"torch.special.expit": "sigmoid", "torch.nn.functional.logsigmoid": "log_sigmoid"}
_MODULES = {
    "torch.nn.Softmax": "softmax",
    "torch.nn.Softmax2d": "softmax",
    "torch.nn.LogSoftmax": "log_softmax",
    "torch.nn.Sigmoid": "sigmoid",
    "torch.nn.LogSigmoid": "log_sigmoid",
    "torch.nn.Linear": "linear",
}
_METHODS = {"softmax", "log_softmax", "sigmoid"}
# methods that put the same values into another shape, place or precision
_KEEPING = {
    "clone", "contiguous", "cpu", "cuda", "detach", "double", "flatten", "float", "half", "permute", "reshape",
    "squeeze", "to", "transpose", "type", "unsqueeze", "view",
}  # fmt: skip
_RUN_BY_CALL = {"forward", "__call__"}
_SEQUENTIAL = "torch.nn.Sequential"
_MODULE = "torch.nn.Module"
_WORDS = re.compile("softmax|sigmoid", re.IGNORECASE)
_DEPTH = 9


@dataclass(frozen=True, slots=True)
class Activation:
    """The last activation on the way to a value: its name, and the node that applies or makes it."""

    name: str
    node: cst.CSTNode


class Activations:
    """Activations of the values of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names

    def of(self, expression: cst.BaseExpression | None) -> Activation | None:
        """The one activation on every way to a value, None where they differ or one is out of sight."""
        return self._of(expression, 0)

    def _of(self, expression: cst.BaseExpression | None, depth: int) -> Activation | None:
        if expression is None or depth > _DEPTH:
            return None
        match expression:
            case cst.Call():
                return self._of_call(expression, depth)
            case cst.IfExp():
                return _agreed([self._of(expression.body, depth + 1), self._of(expression.orelse, depth + 1)])
            case cst.Subscript(value=cst.Name() as whole):
                return self._of_name(whole, depth + 1)  # rows that a mask or an index takes
            case cst.Name():
                return self._of_name(expression, depth)
        return None

    def _of_name(self, name: cst.Name, depth: int) -> Activation | None:
        found: list[Activation | None] = []
        for binding in self._facts.reaching.bindings(name):
            if binding.kind is Kind.ASSIGN and not binding.path:
                found.append(self._of(binding.value, depth + 1))
            elif binding.kind is Kind.ASSIGN and binding.value is not None:
                parts = self._facts.results.of(binding.value, binding.path)
                found.extend(self._of(part, depth + 2) for part in parts)
            elif binding.kind is Kind.PARAMETER and isinstance(binding.scope, cst.FunctionDef):
                found.append(self._of_parameter(binding.scope, binding.name, depth))
            else:
                return None
        return _agreed(found)

    def _of_parameter(self, function: cst.FunctionDef, name: str, depth: int) -> Activation | None:
        """What every call of a helper gives for a parameter."""
        calls = self._facts.hooks.calls_of.get(function, ())
        if self._facts.hooks.of(function) or depth > 3:
            return None
        given = [self._facts.values.given(function, call, name) for call in calls]
        if not calls and function.name.value in _RUN_BY_CALL:
            given = self._given_to_instances(function, name)
        return _agreed([self._of(each, depth + 1) for each in given])

    def _given_to_instances(self, function: cst.FunctionDef, name: str) -> list[cst.BaseExpression | None]:
        """What every call of an object of this file gives for a parameter of its `forward` or `__call__`."""
        node = self._facts.tree.class_of(function)
        plain = [each.name.value for each in function.params.params][1:]
        if node is None or name not in plain:
            return []
        made = self._names.defined(node)
        found: list[cst.BaseExpression | None] = []
        for call in self._facts.tree.all(cst.Call):
            origins = self._facts.values.origins(call.func) if isinstance(call.func, (cst.Name, cst.Attribute)) else ()
            if any(each.name == made for each in origins) and self._facts.classes.local(self._names.call(call)) is None:
                arg = self._names.argument(call, name, plain.index(name))
                found.append(arg.value if arg is not None and not arg.star else None)
        return found

    def _of_call(self, call: cst.Call, depth: int) -> Activation | None:
        name = self._names.of(call.func)
        if name in _FUNCTIONS:
            return Activation(_FUNCTIONS[name], call)
        callee = self._facts.hooks.callee(call)
        if callee is not None:
            return self._returned(callee, depth)
        if isinstance(call.func, cst.Attribute) and not (name or "").startswith("torch."):
            method, receiver = call.func.attr.value, call.func.value
            if method in _METHODS and not self._is_of_module(receiver):
                return Activation(method, call)
            if method in _KEEPING:
                return self._of(receiver, depth + 1)
        origins = self._facts.values.unwrapped(call.func)
        return _agreed([self._of_module(each.name, each.call, depth + 1) for each in origins])

    def _is_of_module(self, receiver: cst.BaseExpression) -> bool:
        """Whether `receiver.softmax` is an attribute of a module, which may be anything, and no method of a tensor."""
        return self._facts.classes.is_self(receiver) or self._facts.values.is_module(receiver)

    def _of_module(self, name: str, call: cst.Call | None, depth: int) -> Activation | None:
        """What a module of a class does last, as `call` makes it."""
        if depth > _DEPTH:
            return None
        if name in _MODULES:
            return Activation(_MODULES[name], call) if call is not None else None
        if name == _SEQUENTIAL and call is not None and call.args:
            last = call.args[-1]
            if last.star or (len(call.args) == 1 and not isinstance(last.value, cst.Call)):
                return None
            inner = self._names.call(last.value)
            if not isinstance(last.value, cst.Call) or inner is None or inner == "collections.OrderedDict":
                return None
            if self._facts.hooks.callee(last.value) is not None:
                return None
            return self._of_module(inner, last.value, depth + 1)
        node = self._facts.classes.local(name)
        if node is None:
            return self._of_module_elsewhere(name, call, depth)
        if not self._facts.classes.is_a(node, _MODULE):
            return None
        forward = self._facts.classes.method(node, "forward")
        return self._returned(forward, depth) if forward is not None else None

    def _of_module_elsewhere(self, name: str, call: cst.Call | None, depth: int) -> Activation | None:
        """What a module does last whose class stands in another file of the project, told at the call that makes it.

        A linear layer, which most models end in, is not looked for there.
        """
        found = module_elsewhere(self._facts, name, _WORDS) if call is not None else None
        if call is None or found is None:
            return None
        forward = found[0].classes.method(found[1], "forward")
        last = found[0].activations._returned(forward, depth) if forward is not None else None
        return Activation(last.name, call) if last is not None and last.name != "linear" else None

    def _returned(self, function: cst.FunctionDef, depth: int) -> Activation | None:
        """What every `return` of a function agrees on."""
        returns = self._facts.values.returns(function)
        return _agreed([self._of(value, depth + 1) for value in returns])


def _agreed(found: list[Activation | None]) -> Activation | None:
    first = found[0] if found else None
    if first is None or any(each is None or each.name != first.name for each in found):
        return None
    return first
