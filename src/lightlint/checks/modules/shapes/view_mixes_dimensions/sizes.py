"""Which views may be given the sizes of a tensor's own dimensions in another order, as far as the text tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import libcst as cst

from lightlint.check import Check
from lightlint.facts.code.bindings import Binding, Kind
from lightlint.text import words_of

_METHODS = frozenset(["view", "reshape"])
_MAKING = frozenset(["zeros", "ones", "rand", "randn", "empty"])  # what gives tensors whose sizes a rehearsal knows
_DEPTH = 4
_Places = frozenset[int | None]
_NO_SIZE: _Places = frozenset()
_ANY: _Places = frozenset([None])  # the size of a dimension, nobody knows which


class WrittenSizes:
    """The sizes that a file's views are given."""

    def __init__(self, check: Check) -> None:
        self._tree, self._names = check.tree, check.names
        self._text = check.facts.source.text

    def may_be_reordered(self) -> bool:
        """Whether a view may be given sizes in another order than the tensor has them."""
        calls = [each for each in self._tree.all(cst.Call) if self._names.method(each) in _METHODS]
        called = {id(each.func) for each in calls}
        others = (each for each in self._tree.all(cst.Attribute) if each.attr.value in _METHODS)
        texts = (self._names.constant(each) for each in self._tree.all(cst.SimpleString))
        if any(id(each) not in called for each in others) or any(each in _METHODS for each in texts):
            return True
        return any(map(self._may_be, calls))

    def _may_be(self, call: cst.Call) -> bool:
        name = self._names.call(call)
        if (name is not None and not name.startswith("torch.")) or any(arg.keyword is not None for arg in call.args):
            return False
        given = call.args[1:] if name is not None else call.args
        if any(arg.star for arg in given):
            return True
        sizes = [arg.value for arg in given]
        if len(sizes) == 1:
            if not isinstance(sizes[0], (cst.Tuple, cst.List)):
                return not self._is_number(sizes[0])
            if any(isinstance(each, cst.StarredElement) for each in sizes[0].elements):
                return True
            sizes = [each.value for each in sizes[0].elements]
        return self._are_out_of_order(sizes) or self._may_be_known(sizes)

    def _is_number(self, value: cst.BaseExpression) -> bool:
        """Whether one argument surely is a size, not several."""
        product = isinstance(value, cst.BinaryOperation) and not isinstance(value.operator, cst.Add)
        return product or isinstance(self._names.constant(value), int)

    def _may_be_known(self, sizes: Sequence[cst.BaseExpression]) -> bool:
        """Whether sizes may be those of a tensor that was made with numbers, of which 1 is none."""
        written = [self._names.constant(each) for each in sizes]
        return len(sizes) > 1 and 1 not in written and self._makes_known

    @cached_property
    def _makes_known(self) -> bool:
        """Whether a tensor may be made with several sizes of which none is 1."""
        if _MAKING.isdisjoint(words_of(self._text)):
            return False
        calls = [each for each in self._tree.all(cst.Call) if self._names.method(each) in _MAKING]
        called = {id(each.func) for each in calls}
        others = (each for each in self._tree.all(cst.Attribute) if each.attr.value in _MAKING)
        return any(id(each) not in called for each in others) or any(map(self._may_have_sizes, calls))

    def _may_have_sizes(self, call: cst.Call) -> bool:
        if not (self._names.call(call) or "torch.").startswith("torch."):
            return False
        given = [arg for arg in call.args if arg.keyword is None or arg.keyword.value == "size"]
        only = given[0].value if len(given) == 1 and not given[0].star else None
        if isinstance(only, (cst.Tuple, cst.List)):
            return 1 not in [self._names.constant(each.value) for each in only.elements]
        known = [self._names.constant(arg.value) for arg in given]
        return bool(given) and 1 not in known and not (only is not None and isinstance(known[0], int))

    def _are_out_of_order(self, sizes: Sequence[cst.BaseExpression]) -> bool:
        places = [found for each in sizes if (found := self._places(each, 0))]
        if len(places) < 2:
            return False
        known = [[each for each in found if each is not None] for found in places]
        if any(None in found for found in places):
            return True
        return any(max(before) >= min(after) for before, after in pairwise(known))

    def _places(self, value: cst.BaseExpression, depth: int) -> _Places:
        """Of which dimensions of a tensor a number may be the size, or a product of such."""
        if depth > _DEPTH:
            return _ANY
        match value:
            case cst.Name():
                found = self._names.bindings.lookup(value)
                return _NO_SIZE.union(*(self._bound(each, depth) for each in found))
            case cst.Integer() | cst.Float() | cst.UnaryOperation():
                return _NO_SIZE
            case cst.Attribute():
                return _ANY if self._is_set_later(value.attr.value) else _NO_SIZE
            case cst.Subscript(value=of, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                if self._is_shape(of, depth):
                    return self._place(self._names.constant(index))
                return self._places(of, depth + 1) if isinstance(of, cst.Attribute) else _ANY
            case cst.BinaryOperation(left=left, right=right, operator=cst.Multiply()):
                return self._places(left, depth + 1) | self._places(right, depth + 1)
            case cst.BinaryOperation(left=left, operator=cst.FloorDivide() | cst.Divide()):
                return self._places(left, depth + 1)
            case cst.BinaryOperation(operator=cst.Add() | cst.Subtract() | cst.Modulo()):
                return _NO_SIZE
            case cst.IfExp(body=one, orelse=other):
                return self._places(one, depth + 1) | self._places(other, depth + 1)
            case cst.Call(args=[cst.Arg(value=given)]) if self._names.method(value) == "size":
                return self._place(self._names.constant(given))
        return _ANY

    def _bound(self, binding: Binding, depth: int) -> _Places:
        if binding.kind is not Kind.ASSIGN or binding.value is None:
            return _ANY
        if len(binding.path) == 1 and self._is_shape(binding.value, depth):
            return self._place(binding.path[0])
        return _ANY if binding.path else self._places(binding.value, depth + 1)

    def _place(self, index: object) -> _Places:
        return frozenset([index]) if isinstance(index, int) and index >= 0 else _ANY

    def _is_shape(self, value: cst.BaseExpression, depth: int) -> bool:
        """Whether a value is all sizes of one tensor, in order."""
        if isinstance(value, cst.Attribute):
            return value.attr.value == "shape"
        if isinstance(value, cst.Name) and depth < _DEPTH:
            found = self._names.bindings.lookup(value)
            return bool(found) and all(self._is_whole(each, depth) for each in found)
        return isinstance(value, cst.Call) and not value.args and self._names.method(value) == "size"

    def _is_whole(self, binding: Binding, depth: int) -> bool:
        plain = binding.kind is Kind.ASSIGN and not binding.path and binding.value is not None
        return plain and binding.value is not None and self._is_shape(binding.value, depth + 1)

    def _is_set_later(self, name: str) -> bool:
        """Whether objects get an attribute elsewhere than where they are made."""
        if name == "shape":
            return True
        return any(each.attr.value == name and not self._is_in_init(each) for each in self._stored())

    def _stored(self) -> Iterator[cst.Attribute]:
        targets = [each.target for each in self._tree.all(cst.AssignTarget)]
        inner = (each for target in targets for each in self._tree.within(target, cst.Attribute))
        return iter([*inner])

    def _is_in_init(self, node: cst.CSTNode) -> bool:
        function = self._tree.function(node)
        return function is not None and function.name.value == "__init__"
