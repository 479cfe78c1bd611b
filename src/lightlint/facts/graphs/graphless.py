"""Values that surely carry no graph: indices, flags, numbers and batches, through functions and losses of the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.tensors.criteria import Criteria
from lightlint.facts.tensors.results import Results

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_DEPTH = 14
_CUTTING = {"argmax", "argmin", "eq", "ne", "gt", "lt", "ge", "le"}
_PICKING = {"max", "min", "topk", "sort", "median", "mode"}  # with a dimension: values, and the indices behind them
_KEEPING = {
    "abs", "byte", "clamp", "clone", "contiguous", "cpu", "cuda", "double", "flatten", "float", "half", "int", "log", "long",
    "bool", "mean", "permute", "pow", "requires_grad_", "reshape", "sqrt", "square", "squeeze", "sum", "to", "transpose",
    "type", "type_as", "unsqueeze", "view",
}  # fmt: skip
_OF_ALL = {"mul", "add", "sub", "div", "logical_and", "logical_or"}
_MADE = {"zeros_like", "ones_like", "zeros", "ones"}
_LOADER = re.compile(r"loader|batches|data$|_dl$|^dl$|dataset|^(?:train|val|valid|test)_?(?:set|iter)$", re.IGNORECASE)
_WRAPPING = {"enumerate", "tqdm"}


@dataclass(frozen=True, slots=True)
class Free:
    """A value without a graph, and where one ended if there was one."""

    cut: cst.CSTNode | None = None


# what the parameters of the functions on the way were given, by the parameter's node, and what held there
Given = Mapping[int, tuple["cst.BaseExpression | None", "Given"]]


class Graphless:
    """What one file computes without a graph. What `of` does not know may carry one, and is None."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._names = facts.names

    def of(self, value: cst.CSTNode | None, given: Given | None = None, depth: int = 0) -> Free | None:
        """What surely is without a graph in a value."""
        given = given or {}
        match value:
            case _ if depth > _DEPTH:
                return None
            case cst.Integer() | cst.Float():
                return Free()
            case cst.Comparison():
                return Free(value)
            case cst.BinaryOperation():
                return self._all([value.left, value.right], given, depth)
            case cst.UnaryOperation():
                return self.of(value.expression, given, depth + 1)
            case cst.Name() if self._names.constant(value) is UNKNOWN:
                return self._of_name(value, given, depth)
            case cst.Name():
                return Free()
            case cst.Attribute():
                return self._of_attribute(value, given, depth)
            case cst.Subscript():
                picks = self._picks(value.value, _index(value))
                return Free(value) if picks else self.of(value.value, given, depth + 1)
            case cst.Call():
                return self._of_call(value, given, depth)
        return None

    def _all(self, values: Sequence[cst.CSTNode | None], given: Given, depth: int) -> Free | None:
        met = Free()
        for each in values:
            found = self.of(each, given, depth + 1)
            if found is None:
                return None
            met = met if met.cut is not None else found
        return met if values else None

    def _of_name(self, name: cst.Name, given: Given, depth: int) -> Free | None:
        found = self._facts.reaching.bindings(name)
        if any(each.kind is Kind.AUGMENT for each in found):
            found = self._names.bindings.lookup(name)
        met = Free()
        for each in found:
            end = self._of_binding(each, given, depth)
            if end is None:
                return None
            met = met if met.cut is not None else end
        return met if found else None

    def _of_binding(self, binding: Binding, given: Given, depth: int) -> Free | None:
        value = binding.value
        if binding.kind is Kind.PARAMETER:
            passed, around = given.get(id(binding.site), (None, {}))
            return self.of(passed, around, depth + 1)
        if binding.kind is Kind.LOOP:
            return Free() if value is not None and self._is_loader(value) else None
        if value is None or binding.kind not in {Kind.ASSIGN, Kind.AUGMENT}:
            return None
        if not binding.path or isinstance(value, (cst.Name, cst.Subscript)):
            return self.of(value, given, depth + 1)
        if isinstance(value, cst.Tuple):
            place = binding.path[0]
            inside = value.elements[place].value if len(binding.path) == 1 and place < len(value.elements) else None
            return self.of(inside, given, depth + 1)
        picks = binding.path == (1,) and self._picks(value, 1)
        return Free(value) if picks else None

    def _is_loader(self, iterated: cst.BaseExpression) -> bool:
        """Whether a loop draws batches: data without a graph."""
        while isinstance(iterated, cst.Call) and self._names.method(iterated) in _WRAPPING and iterated.args:
            iterated = iterated.args[0].value
        named = isinstance(iterated, (cst.Name, cst.Attribute)) and _LOADER.search(self._names.key(iterated))
        return bool(named) or self._facts.values.is_loader(iterated)

    def _of_attribute(self, attribute: cst.Attribute, given: Given, depth: int) -> Free | None:
        """Indices of a result, a size, a number that the class sets."""
        if attribute.attr.value == "shape":
            return Free()
        if attribute.attr.value == "indices" and self._picks(attribute.value, 1):
            return Free(attribute)
        node = self._facts.classes.self_class(attribute.value)
        values = self._facts.classes.attribute_sources(node, attribute.attr.value) if node is not None else []
        plain = [not path and value is not None and self._is_number(value) for value, path in values]
        return Free() if plain and all(plain) else None

    def _is_number(self, value: cst.BaseExpression) -> bool:
        """Whether a value is a number, also one that a parameter is by default or says to be."""
        found = self._names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        for each in found:
            annotated = self._names.key(each.annotation) in {"int", "float"}
            default = each.value is not None and self._is_number(each.value)
            if each.kind is not Kind.PARAMETER or not (annotated or default):
                return False
        return bool(found) or isinstance(self._names.constant(value), (int, float))

    def _picks(self, value: cst.BaseExpression, place: object) -> bool:
        """Whether an item of a call's result is its indices: `torch.max(x, 1)[1]`."""
        if place != 1 or not isinstance(value, cst.Call) or self._names.method(value) not in _PICKING:
            return False
        of_torch = (self._names.of(value.func) or "").startswith("torch.")
        dimension = self._names.argument(value, "dim", 1 if of_torch else 0)
        known = dimension is not None and isinstance(self._names.constant(dimension.value), int)
        return known and (of_torch or isinstance(value.func, cst.Attribute))

    def _of_call(self, call: cst.Call, given: Given, depth: int) -> Free | None:
        name, method = self._names.of(call.func) or "", self._names.method(call)
        arguments = [arg.value for arg in call.args]
        functions = self._facts.fact(Results).functions(call)
        if functions:
            ends = [self._returned(each, call, given, depth) for each in functions]
            return ends[0] if all(ends) else None
        loss = self._facts.fact(Criteria).of(call)
        if loss is not None:
            return self._all([loss.input, loss.target], given, depth)
        if name.startswith("torch."):
            word = name.rpartition(".")[2]
            if word in _CUTTING or name == "torch.nn.functional.one_hot":
                return Free(call)
            if word == "where" and len(arguments) == 3:
                end = self._all(arguments[1:], given, depth)
                return Free(call) if end is not None else None
            if word in _MADE:
                return Free()
            first = arguments if word in _OF_ALL else arguments[:1] if word in _KEEPING else []
            return self._all(first, given, depth)
        if name.startswith("builtins."):
            return Free() if name == "builtins.len" else None
        if isinstance(call.func, cst.Attribute) and not name:
            if method in {"argmax", "argmin"}:
                return Free(call)
            if method in {"size", "numel", "item"}:
                return Free()
            if method in _KEEPING:
                return self.of(call.func.value, given, depth + 1)
        return None

    def _returned(self, function: cst.FunctionDef, call: cst.Call, given: Given, depth: int) -> Free | None:
        params = function.params
        if (
            function.decorators
            or params.star_kwarg
            or isinstance(params.star_arg, cst.Param)
            or self._names.has_star(call)
        ):
            return None
        plain = [*params.posonly_params, *params.params]
        if self._facts.tree.class_of(function) is not None:
            plain = plain[1:]
        inside = dict(given)
        for place, each in enumerate(plain):
            passed = self._names.argument(call, each.name.value, place)
            inside[id(each)] = (passed.value, given) if passed is not None else (each.default, {})
        for each in params.kwonly_params:
            passed = self._names.argument(call, each.name.value)
            inside[id(each)] = (passed.value, given) if passed is not None else (each.default, {})
        end = self._all(self._facts.values.returns(function), inside, depth)
        return Free(call) if end is not None and end.cut is not None else end


def _index(item: cst.Subscript) -> object:
    """`1` of `x[1]`."""
    place = item.slice[0].slice if len(item.slice) == 1 else None
    number = place.value if isinstance(place, cst.Index) else None
    return int(number.value) if isinstance(number, cst.Integer) and number.value.isdecimal() else None
