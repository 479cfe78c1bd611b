"""Settings that a program makes what it needs before it runs: `config["scheduler"] = "step"` at the top of its file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.names import UNKNOWN

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_READING = {"get", "items", "keys", "values", "copy"}
_LOOKING = (
    cst.For, cst.CompFor, cst.ComparisonTarget, cst.Comparison, cst.ImportAlias, cst.AssignTarget, cst.DictElement,
    cst.FormattedStringExpression,
)  # fmt: skip


class Settled:
    """Which tests the settings of one file decide."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts, self._names, self._tree = facts, facts.names, facts.tree
        self._known: dict[tuple[str, str], object] = {}

    def is_against(self, node: cst.CSTNode) -> bool:
        """Whether a test that must come out one way for a node of a function to run comes out the other way."""
        owner = self._tree.owner(node)
        if not isinstance(owner, cst.FunctionDef):
            return False
        return any(self._comes_out(test) is (not outcome) for test, outcome in self._facts.conditions(node))

    def _comes_out(self, test: cst.BaseExpression) -> bool | None:
        match test:
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
                value, other = self._setting(left), self._names.constant(right)
                if UNKNOWN in (value, other) or not isinstance(operator, (cst.Equal, cst.NotEqual)):
                    return None
                return (value == other) is isinstance(operator, cst.Equal)
            case cst.Subscript():
                value = self._setting(test)
                return None if value is UNKNOWN else bool(value)
        return None

    def _setting(self, item: cst.BaseExpression) -> object:
        """What a key of a file's own settings surely holds when its functions run."""
        name, key = self._item(item)
        if name is None or not isinstance(key, str):
            return UNKNOWN
        found = self._names.bindings.lookup(name)
        if len(found) != 1 or found[0].scope is not self._tree.module:
            return UNKNOWN
        if (name.value, key) not in self._known:
            self._known[name.value, key] = self._held(name.value, key)
        return self._known[name.value, key]

    def _item(self, item: cst.CSTNode) -> tuple[cst.Name | None, object]:
        match item:
            case cst.Subscript(value=cst.Name() as name, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                return name, self._names.constant(index)
        return None, UNKNOWN

    def _held(self, name: str, key: str) -> object:
        value: object = UNKNOWN
        for use in self._tree.all(cst.Name):
            if use.value != name or self._names.is_word(use):
                continue
            for written in self._written(use, key):
                if self._tree.owner(use) is not self._tree.module:
                    return UNKNOWN
                value = written
        return UNKNOWN if value is UNKNOWN or self._is_set_elsewhere(key) else value

    def _written(self, use: cst.Name, key: str) -> tuple[object, ...]:
        """What a use of the settings gives a key: nothing where it leaves it as it is, unknown where it may be anything."""
        above = self._tree.parent(use)
        if isinstance(above, cst.Subscript) and above.value is use:
            other, target = self._item(above)[1], self._tree.parent(above)
            if not self._is_target(above) or (other is not UNKNOWN and other != key):
                return ()
            if isinstance(target, cst.AssignTarget) and other == key:
                return (self._given(self._tree.parent(target)),)
            return (UNKNOWN,)
        if isinstance(above, cst.Attribute):
            return () if above.attr.value in _READING else (UNKNOWN,)
        return () if isinstance(above, _LOOKING) else (UNKNOWN,)

    def _is_target(self, item: cst.CSTNode) -> bool:
        """Whether an item is given a value or deleted, alone or among others."""
        above = self._tree.parent(item)
        if isinstance(above, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
            return self._is_target(above)
        if isinstance(above, (cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor)):
            return above.target is item
        return isinstance(above, (cst.AssignTarget, cst.Del, cst.AsName))

    def _given(self, assign: cst.CSTNode | None) -> object:
        if not isinstance(assign, cst.Assign) or self._facts.conditions(assign) or self._tree.loops(assign):
            return UNKNOWN
        return self._names.constant(assign.value)

    def _is_set_elsewhere(self, key: str) -> bool:
        """Whether a file that this one imports may give the key another value."""
        writes = re.compile(rf"""\[\s*['"]{re.escape(key)}['"]\s*\]\s*=[^=]""")
        texts = map(self._facts.project.text, self._facts.rehearsed.imported)
        return any(map(writes.search, texts))
