"""Loops over the parts of one batch: `for x in batch.split(n)`, `for i in range(0, len(batch), n): batch[i : i + n]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import dotted_name

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_METHODS = {"split", "chunk", "tensor_split"}
_FUNCTIONS = {f"torch.{name}" for name in _METHODS}


class MicroBatches:
    """Which loops go through the parts of a tensor, along its first dimension."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    def whole(self, loop: cst.For) -> tuple[cst.BaseExpression, list[cst.BaseExpression]] | None:
        """The tensor whose parts a loop goes through, with the sizes that say how it is cut; None for other loops."""
        if self._carries_state(loop):
            return None
        iterated = self._facts.values.iterated(loop.iter)
        if isinstance(iterated, cst.Call) and self._names.call(iterated) == "builtins.zip":
            parts = [self._of_parts(arg.value) for arg in iterated.args if not arg.star]
            return parts[0] if parts and len(parts) == len(iterated.args) else None
        return self._of_parts(iterated) or self._of_slices(loop, iterated)

    def _of_parts(self, value: cst.CSTNode) -> tuple[cst.BaseExpression, list[cst.BaseExpression]] | None:
        if not isinstance(value, cst.Call) or self._names.has_star(value):
            return None
        function = self._names.call(value) in _FUNCTIONS
        method = isinstance(value.func, cst.Attribute) and value.func.attr.value in _METHODS and not function
        given = [arg.value for arg in value.args if arg.keyword is None or arg.keyword.value != "dim"]
        if function and len(given) == 2:
            whole, size = given
        elif method and isinstance(value.func, cst.Attribute) and len(given) == 1:
            whole, size = value.func.value, given[0]
        else:
            return None
        along = self._names.argument(value, "dim")
        numbered = isinstance(size, (cst.Name, cst.Attribute, cst.Integer, cst.BinaryOperation))
        text = isinstance(self._names.constant(size), str) or (self._names.of(value.func) is not None and not function)
        first = along is None or self._names.constant(along.value) == 0
        return (whole, self._terms(size)) if numbered and first and not text and dotted_name(whole) else None

    def _of_slices(
        self, loop: cst.For, iterated: cst.CSTNode
    ) -> tuple[cst.BaseExpression, list[cst.BaseExpression]] | None:
        """The tensor of which each step of a loop over a range takes a slice that both ends of move with the step."""
        if not isinstance(iterated, cst.Call) or self._names.call(iterated) != "builtins.range":
            return None
        if not isinstance(loop.target, cst.Name):
            return None
        counter = loop.target.value
        for item in self._tree.own(loop.body, cst.Subscript):
            cut = item.slice[0].slice
            if isinstance(cut, cst.Slice) and cut.lower is not None and cut.upper is not None:
                moving = [self._mentions(each, counter) for each in (cut.lower, cut.upper)]
                if all(moving) and dotted_name(item.value):
                    return item.value, [term for arg in iterated.args for term in self._terms(arg.value)]
        return None

    def _terms(self, size: cst.BaseExpression) -> list[cst.BaseExpression]:
        """The names and numbers that a size is computed from."""
        match size:
            case cst.BinaryOperation():
                return [*self._terms(size.left), *self._terms(size.right)]
            case cst.Name() | cst.Attribute() | cst.Integer():
                return [size]
        return []

    def _mentions(self, value: cst.BaseExpression, word: str) -> bool:
        return any(each.value == word for each in self._tree.within(value, cst.Name))

    def _carries_state(self, loop: cst.For) -> bool:
        """Whether a step gets what the one before gave, as a recurrent network over the parts of a sequence does."""
        for assign in self._tree.own(loop.body, cst.Assign):
            if isinstance(assign.value, cst.Call):
                given = {name.value for arg in assign.value.args for name in self._tree.within(arg.value, cst.Name)}
                bound = {name.value for each in assign.targets for name in self._tree.within(each.target, cst.Name)}
                drawn = {name.value for name in self._tree.within(loop.target, cst.Name)}
                if (given & bound) - drawn:
                    return True
        return False
