"""Which values surely are numpy's: arrays, and the scalars that reductions of them give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.tensors.computed import Computed

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_REDUCTIONS = {"mean", "std", "max", "min", "median", "average", "sum", "prod", "var", "argmax", "argmin"}
_ARRAYS = {
    "array", "asarray", "zeros", "ones", "empty", "concatenate", "stack", "hstack", "vstack", "abs", "absolute", "square",
    "sqrt", "exp", "log", "clip", "float64", "float32", "int64",
}  # fmt: skip
_FUNCTIONS = {f"numpy.{name}" for name in _REDUCTIONS | _ARRAYS} | {"numpy.random.get_state"}
_SCALARS = {f"numpy.{name}" for name in ("mean", "std", "median", "average", "array", "asarray")}
_KEEPING = _REDUCTIONS | {"astype", "copy", "reshape", "flatten", "ravel", "squeeze", "round"}
_DEPTH = 4


class NumpyValues:
    """The values of numpy in one file, where the text leaves no doubt."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    def is_numpy(self, call: cst.Call, depth: int = 0) -> bool:
        """Whether a call gives an array or a scalar of numpy: `np.mean(x)`, `np.concatenate(parts).mean()`."""
        if self._names.call(call) in _FUNCTIONS:
            return not any(arg.keyword is not None and arg.keyword.value == "out" for arg in call.args)
        func = call.func
        if not isinstance(func, cst.Attribute) or depth > _DEPTH:
            return False
        if func.attr.value == "numpy" and not call.args and self._facts.fact(Computed).is_tensor(func.value):
            return True
        return func.attr.value in _KEEPING and self._holds(func.value, depth + 1)

    def _holds(self, value: cst.BaseExpression, depth: int) -> bool:
        """Whether what a method is called on surely is numpy's, by a name too."""
        match value:
            case cst.Call():
                return self.is_numpy(value, depth)
            case cst.BinaryOperation():
                return self._holds(value.left, depth + 1) or self._holds(value.right, depth + 1)
            case cst.Name() if depth <= _DEPTH:
                found = self._facts.reaching.bindings(value)
                given = [each.value for each in found if each.kind is Kind.ASSIGN and not each.path]
                return bool(found) and len(given) == len(found) and all(self._given(each, depth) for each in given)
        return False

    def _given(self, value: cst.BaseExpression | None, depth: int) -> bool:
        return value is not None and self._holds(value, depth + 1)

    def is_list(self, name: cst.Name) -> bool:
        """Whether a name holds a list that scalars of numpy are appended to."""
        bound = self._names.bindings.lookup(name)
        if len(bound) != 1 or not isinstance(bound[0].value, cst.List) or bound[0].path:
            return False
        return any(
            self._names.method(call) == "append"
            and isinstance(call.func, cst.Attribute)
            and self._names.key(call.func.value) == name.value
            and self._names.call(call.args[0].value if call.args else None) in _SCALARS
            for call in self._tree.own(self._tree.owner(name), cst.Call)
        )
