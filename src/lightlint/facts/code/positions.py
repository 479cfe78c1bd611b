"""Where nodes stand in the text. Computed on first use, so that a file without findings never pays for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import TracebackType
from typing import Protocol

import libcst as cst
from libcst._nodes.internal import CodegenState

from lightlint.sources.source import Source


class Places(Protocol):
    """Where the nodes of a tree stand in its text."""

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Character offsets `[start, end)` of a node in the text, its own brackets included, comments around it not."""
        ...


class _Writer(CodegenState):
    """Goes over a module as if to write it, and notes where nodes begin and end.

    Does what libcst's `ByteSpanPositionProvider` does, at a third of its cost: tokens are counted, but for the first not kept.
    """

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.ranges: dict[int, tuple[int, int]] = {}
        self.position = 0
        self._starts: list[int] = []

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.position += len(token)

    def add_token(self, value: str) -> None:
        self.position += len(value) if value.isascii() else len(value.encode())
        if not self.tokens:  # libcst asks whether there are any
            self.tokens.append(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append(self.position)

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._starts.pop()
        if id(node) not in self.ranges:
            self.ranges[id(node)] = start, self.position

    def record_syntactic_position(  # type: ignore[override]  # a context manager as well
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Recorded:
        return _Recorded(self, node, start_node, end_node)


class _Recorded:
    """Notes the range of what is written inside of it, or from one node to another, as that of a node."""

    __slots__ = ("_end_node", "_node", "_start", "_start_node", "_writer")

    def __init__(
        self, writer: _Writer, node: cst.CSTNode, start_node: cst.CSTNode | None, end_node: cst.CSTNode | None
    ) -> None:
        self._writer = writer
        self._node = node
        self._start_node = start_node
        self._end_node = end_node
        self._start = writer.position

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        ranges = self._writer.ranges
        start = self._start if self._start_node is None else ranges[id(self._start_node)][0]
        end = self._writer.position if self._end_node is None else ranges[id(self._end_node)][1]
        ranges[id(self._node)] = start, end


class Positions:
    """Character spans of the nodes of one module."""

    def __init__(self, module: cst.Module, source: Source) -> None:
        self._module = module
        self._source = source

    @cached_property
    def _ranges(self) -> dict[int, tuple[int, int]]:
        """Bytes `[start, end)` of each node, by its `id`."""
        writer = _Writer(self._module)
        self._module._codegen(writer)
        return writer.ranges

    @cached_property
    def _characters(self) -> list[int] | None:
        """Character offset of each UTF-8 byte of the tree's code, None where the text is ASCII and they are the same."""
        text = self._source.text
        if text.isascii() and "\f" not in text:
            return None
        # libcst drops or repeats form feeds in front of a statement, so places are matched without counting them.
        places = [index for index, character in enumerate(text) if character != "\f"] + [len(text)]
        offsets: list[int] = []
        place = 0
        for character in self._module.code if "\f" in text else text:
            offsets.extend([places[place]] * len(character.encode()))
            place += character != "\f"
        return [*offsets, len(text)]

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Character offsets `[start, end)` of a node in the text, its own brackets included, comments around it not."""
        opening: Sequence[cst.CSTNode] = node.lpar if isinstance(node, cst.BaseExpression) else ()
        closing: Sequence[cst.CSTNode] = node.rpar if isinstance(node, cst.BaseExpression) else ()
        start = self._ranges[id(opening[0] if opening else node)][0]
        end = self._ranges[id(closing[-1] if closing else node)][1]
        if self._characters is None:
            return start, end
        return self._characters[start], self._characters[end]
