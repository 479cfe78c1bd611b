"""Whether a file may normalise the one output of a layer, as far as the text tells: asked before anything is rehearsed for it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from lightlint.check import Check
from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.unknown import UNKNOWN

_NORMALISING = frozenset(["softmax", "log_softmax"])
_LOSSES = frozenset(["cross_entropy", "CrossEntropyLoss"])


class SingleOutputs:
    """The layers of a file that may have one output, and what its softmaxes are given."""

    def __init__(self, check: Check) -> None:
        self._tree, self._names, self._hooks, self._classes = check.tree, check.names, check.hooks, check.classes

    def may_be_normalised(self) -> bool:
        """Whether a softmax, or a loss over classes, may be given what a layer with one output gives."""
        return self._has_taker() and any(map(self._may_be_single, self._layers()))

    def _has_taker(self) -> bool:
        named = [each.value for each in self._tree.all(cst.Name)]
        if not _LOSSES.isdisjoint(named):
            return True
        calls = [each for each in self._tree.all(cst.Call) if self._names.method(each) in _NORMALISING]
        texts = [self._names.constant(each) for each in self._tree.all(cst.SimpleString)]
        plain = sum(each in _NORMALISING for each in (*named, *texts))
        return plain > len(calls) or any(map(self._may_take, calls))

    def _may_take(self, call: cst.Call) -> bool:
        is_function = self._names.call(call) is not None
        dim = self._names.argument(call, "dim", 1 if is_function else 0)
        if dim is None or self._names.constant(dim.value) not in (-1, UNKNOWN):
            return dim is None and self._names.has_star(call)
        given = self._names.argument(call, "input", 0) if is_function else None
        value = given.value if given is not None else call.func.value if isinstance(call.func, cst.Attribute) else None
        return value is None or self._may_be_output(value, set())

    def _may_be_output(self, value: cst.BaseExpression, seen: set[int]) -> bool:
        """Whether a value may be what a layer gives."""
        match value:
            case cst.Name():
                found = [each for each in self._names.bindings.lookup(value) if id(each.site) not in seen]
                seen |= {id(each.site) for each in found}
                return any(self._may_be_bound(each, seen) for each in found)
            case cst.BinaryOperation() | cst.Subscript():
                return False  # it is no layer's own output any more
            case cst.Call():
                return self._may_be_given(value, seen)
        return self._names.constant(value) is UNKNOWN

    def _may_be_given(self, call: cst.Call, seen: set[int]) -> bool:
        name, func = self._names.call(call), call.func
        if name is not None and self._classes.local(name) is None:
            return any(arg.star or self._may_be_output(arg.value, seen) for arg in call.args[:1])
        if isinstance(func, cst.Attribute) and isinstance(func.value, (cst.Call, cst.Name)):
            of_self = isinstance(func.value, cst.Name) and self._classes.is_self(func.value)
            return of_self or self._may_be_output(func.value, seen)
        return True

    def _may_be_bound(self, binding: Binding, seen: set[int]) -> bool:
        if binding.kind is Kind.AUGMENT:
            return False
        if binding.kind is not Kind.ASSIGN or binding.value is None:
            return True
        return self._may_be_output(binding.value, seen)

    def _layers(self) -> Iterator[cst.Call | None]:
        """The calls that make linear layers, and None for each place that names the class without a call."""
        calls = [each for each in self._tree.all(cst.Call) if self._names.method(each).endswith("Linear")]
        yield from calls
        called = {id(each.func.attr if isinstance(each.func, cst.Attribute) else each.func) for each in calls}
        imported = {id(name) for each in self._tree.all(cst.ImportAlias) for name in self._tree.within(each, cst.Name)}
        named = (each for each in self._tree.all(cst.Name) if each.value == "Linear")
        if any(id(each) not in called and id(each) not in imported for each in named):
            yield None

    def _may_be_single(self, layer: cst.Call | None) -> bool:
        if layer is None or self._names.has_star(layer):
            return True
        outputs = self._names.argument(layer, "out_features", 1)
        return outputs is None or self._may_be_one(outputs.value)

    def _may_be_one(self, value: cst.BaseExpression) -> bool:
        known = self._names.constant(value)
        if known is not UNKNOWN:
            return known == 1
        match value:
            case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
                return name in self._ones or (isinstance(value, cst.Name) and self._is_counted(value))
            case cst.IfExp(body=one, orelse=other) | cst.BooleanOperation(left=one, right=other):
                return self._may_be_one(one) or self._may_be_one(other)
            case cst.BinaryOperation(left=left, right=right, operator=cst.Multiply()):
                return self._may_be_one(left) and self._may_be_one(right)
            case cst.BinaryOperation(operator=cst.Add()):
                return False
        return True

    def _is_counted(self, name: cst.Name) -> bool:
        """Whether a name may get its value from more than names that never are 1."""
        found = self._names.bindings.lookup(name)
        given = [each.value for each in found if each.kind is Kind.ASSIGN and each.value is not None]
        names = (cst.Name, cst.Attribute)
        return not found or any(not isinstance(each, names) or dotted(each) in self._ones for each in given)

    @cached_property
    def _ones(self) -> set[str]:
        """The names of parameters, arguments, variables and keys that get the number 1 somewhere."""
        found = {each.name.value for each in self._tree.all(cst.Param) if self._is_one(each.default)}
        found |= {each.keyword.value for each in self._tree.all(cst.Arg) if each.keyword and self._is_one(each.value)}
        for assign in self._tree.all(cst.Assign, cst.AnnAssign):
            targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
            found |= {dotted(each) for each in targets if self._is_one(assign.value)}
        for call in self._tree.all(cst.Call):
            found |= self._given_one(call)
        for element in self._tree.all(cst.DictElement):
            key = self._names.constant(element.key)
            found |= {key} if isinstance(key, str) and self._is_one(element.value) else set()
        return found

    def _given_one(self, call: cst.Call) -> set[str]:
        """The parameters of a function or class of this file that a call gives 1 by place."""
        places = [number for number, arg in enumerate(call.args) if arg.keyword is None and self._is_one(arg.value)]
        callee = self._hooks.callee(call) if places else None
        node = self._classes.local(self._names.call(call)) if places and callee is None else None
        if node is not None:
            callee = self._classes.method(node, "__init__")
        parameters = [each.name.value for each in callee.params.params] if callee is not None else []
        skipped = 1 if parameters[:1] in (["self"], ["cls"]) else 0
        return {parameters[place + skipped] for place in places if place + skipped < len(parameters)}

    def _is_one(self, value: cst.BaseExpression | None) -> bool:
        return value is not None and self._names.constant(value) == 1


def dotted(target: cst.BaseExpression) -> str:
    """The last word of a name or attribute, empty for anything else."""
    if isinstance(target, cst.Attribute):
        return target.attr.value
    return target.value if isinstance(target, cst.Name) else ""
