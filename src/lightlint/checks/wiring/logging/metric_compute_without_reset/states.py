"""Whether a metric of the project's own carries its states from batch to batch."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import unpacked

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_ADDING = {"append", "extend", "insert", "update", "add", "setdefault"}
_BY_NAME = {"builtins.getattr", "builtins.setattr", "builtins.super"}


class Carrying:
    """What the methods of one file's metrics do to their states."""

    def __init__(self, facts: FileFacts) -> None:
        self._names, self._classes, self._tree = facts.names, facts.classes, facts.tree

    def goes_on(self, method: cst.FunctionDef) -> bool:
        """Whether a method makes a state out of what it was: one that each batch overwrites carries nothing over."""
        if method.name.value in ("__init__", "compute"):
            return False
        if any(self._names.call(each) in _BY_NAME for each in self._tree.within(method, cst.Call)):
            return True  # the states are named somewhere else
        states = [each for each in self._tree.within(method, cst.Attribute) if self._classes.is_self(each.value)]
        assigns = self._tree.within(method, cst.AssignTarget, cst.AnnAssign)
        targets = {target for each in assigns for target, _, _ in unpacked(each.target, None)}
        stored = {each.attr.value for each in states if each in targets}
        read = {each.attr.value for each in states if each not in targets}
        return bool(stored & read) or any(self._grows(each, targets) for each in states)

    def _grows(self, state: cst.CSTNode, targets: Set[cst.CSTNode]) -> bool:
        """Whether a state is added to where it is: `self.hits += n`, `self.rows.append(row)`, `self.counts[k] = n`."""
        above = self._tree.parent(state)
        if isinstance(above, cst.Subscript) and above.value is state:
            return above in targets or self._grows(above, targets)
        if isinstance(above, cst.Attribute):
            return above.attr.value in _ADDING or above.attr.value.endswith("_")
        if isinstance(above, cst.Call):
            return above.func is state and isinstance(state, cst.Attribute) and not self._is_method(state)
        if isinstance(above, cst.Assign):
            return True  # another name for it, which may be added to
        return isinstance(above, cst.AugAssign) and above.target is state

    def _is_method(self, attribute: cst.Attribute) -> bool:
        owner = self._classes.self_class(attribute.value)
        return owner is not None and self._classes.has_method(owner, attribute.attr.value)
