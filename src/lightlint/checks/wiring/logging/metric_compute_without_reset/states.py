"""Whether a metric of the project's own carries its states from batch to batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

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
        stored = {each.attr.value for each in states if self._is_overwritten(each)}
        read = {each.attr.value for each in states if not self._is_overwritten(each)}
        return bool(stored & read) or any(map(self._grows, states))

    def _is_overwritten(self, state: cst.CSTNode) -> bool:
        """Whether a state is the target of an assignment, alone or among others."""
        above = self._tree.parent(state)
        if isinstance(above, (cst.Element, cst.Tuple)):
            return self._is_overwritten(above)
        return isinstance(above, cst.AssignTarget) or (isinstance(above, cst.AnnAssign) and above.target is state)

    def _grows(self, state: cst.CSTNode) -> bool:
        """Whether a state is added to where it is: `self.hits += n`, `self.rows.append(row)`, `self.counts[k] = n`."""
        above = self._tree.parent(state)
        if isinstance(above, cst.Subscript) and above.value is state:
            return self._is_overwritten(above) or self._grows(above)
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
