"""Where a sketch's nodes stand in the text, as far as `ast` tells: brackets around a value are looked up there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import libcst as cst

from lightlint.sources.source import Source

Marks = Mapping[int, Any]  # nodes of `ast`, by the `id` of the node of a sketch that stands for one

_BEHIND = re.compile(r"(?:\s|\\|#[^\r\n]*)*")  # what may stand between a value and a bracket
_HEAD = re.compile(r"(?:async(?:[ \t\f]|\\\r?\n)+)?(?:def|class)(?:[ \t\f]|\\\r?\n)+")
_OWN_BRACKETS = (cst.Tuple, cst.GeneratorExp)  # whose brackets `ast` takes for a part of them


class UnplacedError(Exception):
    """The text has to be parsed to know where a node stands."""


class SketchPlaces:
    """The places of the nodes of one sketch.

    Args:
        source: the text.
        parent: gives the node directly above one of the sketch's.
        marks: what its nodes were made of.
    """

    def __init__(self, source: Source, parent: Callable[[cst.CSTNode], cst.CSTNode | None], marks: Marks) -> None:
        self._source = source
        self._parent = parent
        self._marks = marks

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Character offsets `[start, end)` of a node in the text, its own brackets included, comments around it not.

        Raises:
            UnplacedError: `ast` does not tell.
        """
        if id(node) not in self._marks:
            return self._by_others(node)
        start, end = self._written(node)
        if isinstance(node, cst.BaseExpression) and self._in_brackets(node, start, end):
            raise UnplacedError
        return start, end

    def _by_others(self, node: cst.CSTNode) -> tuple[int, int]:
        """The place of what `ast` has no node for, told by those around it or in it."""
        if isinstance(node, cst.Arg) and not node.star:
            return self.span(node.value)
        if isinstance(node, cst.SimpleStatementLine):
            return self._written(node.body[0])[0], self._written(node.body[-1])[1]
        above = self._parent(node)
        if not isinstance(node, cst.Name) or above is None:
            raise UnplacedError
        size = len(node.value)
        if isinstance(above, cst.Attribute):
            start = self._written(above)[1] - size
        elif isinstance(above, cst.Arg):
            start = self._written(above)[0]
        elif isinstance(above, (cst.FunctionDef, cst.ClassDef)) and (
            head := _HEAD.match(self._source.text, self._written(above)[0])
        ):
            start = head.end()
        else:
            raise UnplacedError
        if self._source.text[start : start + size] != node.value:
            raise UnplacedError
        return start, start + size

    def _written(self, node: cst.CSTNode) -> tuple[int, int]:
        """From the first to the last character that `ast` takes for a part of a node."""
        mark = self._marks.get(id(node))
        if mark is None or isinstance(node, _OWN_BRACKETS):
            raise UnplacedError
        return self._offset(mark.lineno, mark.col_offset), self._offset(mark.end_lineno, mark.end_col_offset)

    def _offset(self, row: int, column: int) -> int:
        """The character at which a column, counted in bytes, stands."""
        text, start = self._source.text, self._source.row_starts[row - 1]
        ahead = text[start : start + column]
        return start + (column if ahead.isascii() else len(ahead.encode()[:column].decode()))

    def _in_brackets(self, node: cst.BaseExpression, start: int, end: int) -> bool:
        """Whether there may be brackets around a value that are its own, and not those of the call that it is given to."""
        text = self._source.text
        behind = _BEHIND.match(text, end)
        close = behind.end() if behind else end
        if text[close : close + 1] != ")" or not self._may_open(start):
            return False
        above = self._parent(node)
        call = self._parent(above) if isinstance(above, cst.Arg) else None
        return not isinstance(call, cst.Call) or self._written(call)[1] != close + 1

    def _may_open(self, start: int) -> bool:
        """Whether the last character before a place is a bracket, or may be one before a comment."""
        ahead = self._source.text[:start]
        before = ahead.rstrip(" \t\f\r\n\\")
        return before.endswith("(") or (
            "#" in before[before.rfind("\n") + 1 :] and len(before) < len(ahead.rstrip(" \t"))
        )
