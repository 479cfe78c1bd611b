"""A source with the places of its nodes, and what the edit helpers ask about the text around them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

import libcst as cst

from lightlint.sources.source import Source

_CONTINUATION = r"\\(?:\r\n|\r|\n)"
_TRIVIA = re.compile(rf"(?:[ \t\f\r\n]|{_CONTINUATION}|#[^\r\n]*)*")
_STATEMENT_TAIL = re.compile(rf"(?:[ \t\f;]|{_CONTINUATION})*(#[^\r\n]*)?")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_FORMATTED = (cst.FormattedStringExpression, cst.TemplatedStringExpression)


class Spans(Protocol):
    """Places and parents of the nodes of one parsed source."""

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Character offsets `[start, end)` with the node's own brackets, without space and comments around it."""
        ...

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds this one, None for the module."""
        ...


@dataclass(frozen=True)
class Code:
    """What the edit helpers work on. Ranges between two nodes hold trivia only: space, comments, commas, brackets."""

    source: Source
    spans: Spans

    def text_of(self, node: cst.CSTNode) -> str:
        start, end = self.spans.span(node)
        return self.source.text[start:end]

    def line_start(self, offset: int) -> int:
        return self.source.row_starts[self.source.row_of(offset) - 1]

    def limit(self, offset: int) -> int:
        """End of the notebook cell that holds an offset, or of the text."""
        cell = self.source.cell_at(offset)
        return cell.end if cell else len(self.source.text)

    def newline(self, offset: int) -> str:
        """The kind of line ending in use around an offset."""
        found = _NEWLINE.search(self.source.text, offset) or _NEWLINE.search(self.source.text)
        return found[0] if found else "\n"

    def newline_at(self, offset: int) -> str:
        """The line ending that stands at an offset, empty where there is none."""
        found = _NEWLINE.match(self.source.text, offset)
        return found[0] if found else ""

    def margin(self, offset: int) -> str | None:
        """The space before an offset on its line; None if something else stands there or the line continues another."""
        start = self.line_start(offset)
        prefix = self.source.text[start:offset]
        continued = self.source.text.endswith(("\\\n", "\\\r\n", "\\\r"), 0, start)
        return prefix if not prefix.strip(" \t\f") and not continued else None

    def starts_line(self, offset: int) -> bool:
        """Whether only space stands before an offset on its line."""
        return not self.source.text[self.line_start(offset) : offset].strip(" \t\f")

    def trivia_end(self, offset: int) -> int:
        """End of the space and comments that start at an offset between two tokens."""
        found = _TRIVIA.match(self.source.text, offset)
        return found.end() if found else offset

    def statement_line_end(self, offset: int) -> tuple[int, bool] | None:
        """Where the line of a statement that ends at an offset ends, before its newline, and whether by a comment.

        None where another statement follows on the line.
        """
        found = _STATEMENT_TAIL.match(self.source.text, offset)
        end = found.end() if found else offset
        if end < self.limit(offset) and not self.newline_at(end):
            return None
        return end, bool(found and found[1])

    def has_comment(self, node: cst.BaseExpression | cst.BaseSmallStatement) -> bool:
        """Whether a comment stands inside a node; its tokens are looked through only where its text may have one."""
        return "#" in self.text_of(node) and any_comment(node)

    def in_formatted_string(self, node: cst.CSTNode) -> bool:
        """Whether a node stands inside an f-string or t-string, where quotes, newlines and `=` have rules of their own."""
        current: cst.CSTNode | None = node
        while current is not None and not isinstance(current, _FORMATTED):
            current = self.spans.parent(current)
        return current is not None


def any_comment(node: cst.CSTNode) -> bool:
    """Whether a comment is among the tokens of a parsed node."""
    return isinstance(node, cst.Comment) or any(any_comment(child) for child in node.children)
