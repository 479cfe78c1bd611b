"""Tensors that whoever reads them moves to a device first, so that a move before that, which is dropped, costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_PLACING = {"to", "cuda"}
_DESCRIBING = {"shape", "size", "dtype", "ndim", "dim", "numel"}


def read_behind(facts: FileFacts, statement: cst.CSTNode, name: cst.Name) -> list[cst.Name] | None:
    """What may read a name of a statement as it leaves it; None where a function inside may at any time."""
    owner = facts.tree.owner(statement)
    bound = [each.site for each in facts.names.bindings.lookup(name) if each.site is not name]
    alike = (each for each in facts.tree.within(owner, cst.Name) if each.value == name.value and each not in bound)
    uses = [each for each in alike if not facts.tree.contains(statement, each)]
    if any(facts.tree.owner(each) is not owner for each in uses):
        return None
    flow = facts.flow(owner)
    return [each for each in uses if flow.reaches(statement, [each], avoiding=bound)]


class MovedAgain:
    """The later moves in one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts, self._tree = facts, facts.tree

    def is_moved_again(self, name: cst.Name, statement: cst.CSTNode) -> bool:
        """Whether all that may read a name as a statement leaves it moves it, and something does."""
        read = read_behind(self._facts, statement, name) or ()
        told = [self._is_moved(each) for each in read if not self._is_described(each)]
        return bool(told) and all(told)

    def _is_described(self, value: cst.CSTNode) -> bool:
        """Whether only what is the same on each device is asked for."""
        above = self._tree.parent(value)
        return isinstance(above, cst.Attribute) and above.value is value and above.attr.value in _DESCRIBING

    def _is_moved(self, value: cst.CSTNode) -> bool:
        above = self._tree.parent(value)
        call = self._tree.parent(above) if isinstance(above, cst.Attribute) and above.value is value else None
        if isinstance(call, cst.Call) and isinstance(above, cst.Attribute):
            dropped = isinstance(self._tree.parent(call), cst.Expr)
            return call.func is above and above.attr.value in _PLACING and not dropped
        function = self._tree.function(above) if isinstance(above, cst.Return) else None
        calls = self._facts.hooks.calls_of.get(function, ()) if function is not None else ()
        return bool(calls) and all(map(self._is_result_moved, calls))

    def _is_result_moved(self, call: cst.Call) -> bool:
        above = self._tree.parent(call)
        if not isinstance(above, cst.Attribute) or above.value is not call or above.attr.value not in _PLACING:
            return False
        return isinstance(self._tree.parent(above), cst.Call)
