"""What calls give back: the `return` expressions of this file's functions, and of the `forward` of its modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_MODULE = "torch.nn.Module"


class Results:
    """Results of the calls of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts

    def functions(self, call: cst.Call) -> list[cst.FunctionDef]:
        """The functions of this file that a call runs, `forward` for a call of a module; empty unless all are in sight."""
        facts = self._facts
        callee = facts.hooks.callee(call)
        if callee is not None:
            return [callee]
        found: list[cst.FunctionDef] = []
        for origin in facts.values.unwrapped(call.func):
            node = facts.classes.local(origin.name)
            forward = facts.classes.method(node, "forward") if node is not None else None
            if node is None or forward is None or not facts.classes.is_a(node, _MODULE):
                return []
            found.append(forward)
        return found

    def of(self, value: cst.BaseExpression, path: tuple[int, ...] = ()) -> list[cst.BaseExpression | None]:
        """What a call of this file's functions can give, or `value[path]` of it; None for what is out of sight."""
        if not isinstance(value, cst.Call):
            return [None]
        returns = [each for function in self.functions(value) for each in self._facts.values.returns(function)]
        return [_part(each, path) for each in returns] or [None]


def _part(value: cst.BaseExpression | None, path: tuple[int, ...]) -> cst.BaseExpression | None:
    for place in path:
        if not isinstance(value, (cst.Tuple, cst.List)) or not -len(value.elements) <= place < len(value.elements):
            return None
        element = value.elements[place]
        if any(isinstance(each, cst.StarredElement) for each in value.elements):
            return None
        value = element.value
    return value
