"""Graphs that are made before a loop, and that each of its iterations may go back over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.autograd import KEEPING
from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.tensors import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lightlint.facts.file import FileFacts

_DEPTH = 8
_CUTTING = {
    "item",
    "detach",
    "tolist",
    "numpy",
    "size",
    "numel",
    "parameters",
    "state_dict",
    "modules",
    "named_parameters",
}
_SAME_MODULE = {"to", "cuda", "cpu", "train", "eval", "half", "float", "double", "requires_grad_", "apply"}
_OF_TENSORS = KEEPING | {
    "chunk",
    "split",
    "gather",
    "index_select",
    "transpose",
    "permute",
    "expand",
    "repeat",
    "unbind",
}
_HOLDING = {"list", "tuple", "dict", "sum", "zip", "enumerate", "reversed", "iter", "next", "max", "min"}
_PLACING = {"to", "cuda", "type", "range"}


class OuterGraphs:
    """What one loop's iterations use of the graphs that were made outside of it.

    Errs towards yes: a value from out of sight that is used as a tensor may carry one.
    """

    def __init__(self, facts: FileFacts, loop: cst.CSTNode) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._loop = loop

    def may_be_used(self, parts: Iterable[cst.CSTNode]) -> bool:
        """Whether expressions of the loop may be computed from such a graph, themselves or in functions they call."""
        rooms, seen = list(parts), set[int]()
        for room in rooms:
            for name in self._tree.within(room, cst.Name):
                if not self._names.is_word(name) and self._brings(name, room):
                    return True
            for call in self._tree.within(room, cst.Call):
                new = [each.body for each in self._facts.results.functions(call) if id(each) not in seen]
                seen.update(id(self._tree.parent(body)) for body in new)
                rooms += new
        return False

    def _brings(self, name: cst.Name, room: cst.CSTNode) -> bool:
        """Whether a name in some code stands for a tensor with a graph from before the loop."""
        used: cst.BaseExpression = name
        above = self._tree.parent(name)
        if self._facts.classes.self_class(name) is not None:
            if not isinstance(above, cst.Attribute):
                return False
            used = above
        elif any(self._is_within(each, room) for each in self._names.bindings.lookup(name)):
            return False  # its own values are looked at, too
        strict = self._is_used_as_tensor(used)
        return strict is not None and self._carries(used, 0, strict=strict)

    def _is_within(self, binding: Binding, room: cst.CSTNode) -> bool:
        return self._tree.contains(self._loop, binding.site) or (
            self._tree.contains(room, binding.site) and binding.kind is not Kind.PARAMETER
        )

    def _is_used_as_tensor(self, used: cst.BaseExpression) -> bool | None:
        """Whether a value is used as tensors surely are; None for a use that is none of a tensor with a graph."""
        above = self._tree.parent(used)
        match above:
            case cst.Call():
                return None
            case cst.Attribute():
                called = isinstance(self._tree.parent(above), cst.Call)
                return None if called and above.attr.value not in _OF_TENSORS else False
            case cst.Arg():
                call = self._tree.parent(above)
                placed = above.keyword is not None and above.keyword.value == "device"
                if placed or not isinstance(call, cst.Call) or self._names.method(call) in _PLACING:
                    return None
                return None if self._facts.results.functions(call) else True  # else by what the function does with it
            case cst.Subscript():
                return True
        return False

    def _carries(self, value: cst.BaseExpression | None, depth: int, *, strict: bool) -> bool:
        """Whether a value may hold a graph; `strict` takes one from out of sight to do so."""
        if value is None or depth > _DEPTH:
            return strict
        parts: list[cst.BaseExpression | None] = []
        match value:
            case cst.Name():
                found = self._facts.reaching.bindings(value)
                return any(self._binds(each, depth + 1, strict=strict) for each in found)
            case cst.Attribute():
                own = self._facts.classes.self_class(value.value)
                if own is None:
                    return self._carries(value.value, depth + 1, strict=False)
                kept = self._facts.classes.attribute_sources(own, value.attr.value)
                parts = [source for source, _ in kept] or [None]
            case cst.Subscript():
                parts = [value.value]
            case cst.BinaryOperation():
                return self._any([value.left, value.right], depth, strict=strict)
            case cst.UnaryOperation():
                parts = [value.expression]
            case cst.IfExp():
                parts = [value.body, value.orelse]
            case cst.Tuple() | cst.List() | cst.Dict():
                parts = [each.value for each in value.elements]
            case cst.ListComp() | cst.GeneratorExp():
                parts = [value.elt]
            case cst.Call():
                return not self._facts.gradients.may_be_off(value) and self._gives(value, depth, strict=strict)
        return any(self._carries(each, depth + 1, strict=strict) for each in parts)

    def _binds(self, binding: Binding, depth: int, *, strict: bool) -> bool:
        if binding.kind in {Kind.ASSIGN, Kind.AUGMENT}:
            return self._carries(binding.value, depth, strict=strict)
        if binding.kind is Kind.LOOP:
            return self._carries(binding.value, depth, strict=False)
        if binding.kind is not Kind.PARAMETER or not isinstance(binding.scope, cst.FunctionDef):
            return False
        hooks = self._facts.hooks
        calls = [*hooks.calls_of.get(binding.scope, ()), *hooks.constructions.get(binding.scope, ())]
        given = [hooks.given(binding.scope, call, binding.name) for call in calls]
        return any(self._carries(each, depth, strict=strict) for each in given if each is not None) if calls else strict

    def _gives(self, call: cst.Call, depth: int, *, strict: bool) -> bool:
        """Whether what a call gives may carry a graph."""
        name, func = self._names.call(call) or "", call.func
        values = self._facts.values
        given = [arg.value for arg in call.args]
        if (
            values.is_module(call)
            or self._facts.classes.local(name) is not None
            or self._names.method(call) in _CUTTING
        ):
            return False
        if values.is_module(func):
            return True
        if functions := self._facts.results.functions(call):
            given = [each for one in functions for each in values.returns(one) if each is not None]
        elif name.startswith("builtins.") or name in FACTORIES:
            given = given if name.rpartition(".")[2] in _HOLDING else []
        elif isinstance(func, cst.Attribute) and not name:
            if func.attr.value in _OF_TENSORS:
                given = [func.value]
            elif func.attr.value not in _SAME_MODULE:
                return strict or values.is_module(func.value)
        elif not name.startswith(("torch.", "numpy.")):
            return strict
        return self._any(given, depth, strict=strict)

    def _any(self, operands: Iterable[cst.BaseExpression], depth: int, *, strict: bool) -> bool:
        """Whether what is computed of some values carries a graph: one of theirs, or one that begins at a parameter."""
        return any(self._is_parameter(each) or self._carries(each, depth + 1, strict=strict) for each in operands)

    def _is_parameter(self, value: cst.BaseExpression) -> bool:
        origin = self._facts.values.constructor(value)
        if origin is not None and origin.name == "torch.nn.Parameter":
            return True
        if isinstance(value, cst.Name):
            drawn = [each.value for each in self._facts.reaching.bindings(value) if each.kind is Kind.LOOP]
            return any(self._names.method(each) == "parameters" for each in drawn)
        return isinstance(value, cst.Attribute) and self._facts.values.is_module(value.value)
