"""Under which prefix a module's state dict holds its keys: `module.` inside DataParallel, `_orig_mod.` once compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.objects.classes import NN_MODULE
from lightlint.facts.values.values import SAME_OBJECT

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

PREFIXES = {
    "torch.nn.parallel.DistributedDataParallel": "module.",
    "torch.nn.DataParallel": "module.",
    "torch.compile": "_orig_mod.",
}
_INNER = {"module", "_orig_mod"}
_DEPTH = 6


class Prefixes:
    """The prefixes of one file's modules."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._names = facts.names

    def of(self, module: cst.CSTNode | None) -> str | None:
        """The prefix that a module's keys surely have, empty for none; None where that is not certain."""
        found = self._found(module, 0)
        return found.pop() if len(found) == 1 else None

    def _found(self, module: cst.CSTNode | None, depth: int) -> set[str | None]:
        if depth > _DEPTH:
            return {None}
        match module:
            case cst.IfExp():
                return self._found(module.body, depth + 1) | self._found(module.orelse, depth + 1)
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if method in SAME_OBJECT:
                return self._found(receiver, depth + 1)
            case cst.Call():
                return self._of_call(module, depth)
            case cst.Attribute(value=wrapped, attr=cst.Name(value=inner)) if inner in _INNER:
                return {"" if each == f"{inner}." else None for each in self._found(wrapped, depth + 1)}
            case cst.Attribute():
                node = self._facts.classes.self_class(module.value)
                sources = self._facts.classes.attribute_sources(node, module.attr.value) if node is not None else []
                parts = [self._found(value, depth + 1) if not path else {None} for value, path in sources]
                return set[str | None]().union(*parts) or {None}
            case cst.Name():
                found = self._facts.reaching.bindings(module)
                parts = [self._of_binding(each, depth + 1) for each in found]
                return set[str | None]().union(*parts) or {None}
        return {None}

    def _of_call(self, call: cst.Call, depth: int) -> set[str | None]:
        name = self._names.call(call) or ""
        if name in PREFIXES and call.args:
            inner = self._found(call.args[0].value, depth + 1)
            return {PREFIXES[name] + each if each else PREFIXES[name] for each in inner}
        callee = self._facts.hooks.callee(call)
        if callee is not None:
            parts = [self._found(value, depth + 1) for value in self._facts.values.returns(callee)]
            return set[str | None]().union(*parts) or {None}
        plain = self._facts.classes.name_is_a(name, NN_MODULE) or name.startswith("torchvision.models.")
        return {""} if plain else {None}

    def _of_binding(self, binding: Binding, depth: int) -> set[str | None]:
        if binding.kind is Kind.ASSIGN and not binding.path:
            return self._found(binding.value, depth)
        function = binding.scope
        if binding.kind is not Kind.PARAMETER or not isinstance(function, cst.FunctionDef):
            return {None}
        calls = (*self._facts.hooks.calls_of.get(function, ()), *self._facts.hooks.constructions.get(function, ()))
        parts = [self._found(self._facts.values.given(function, call, binding.name), depth) for call in calls]
        return set[str | None]().union(*parts) or {None}
