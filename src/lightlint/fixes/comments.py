"""The comments that belong to a statement: those right above it, and the one behind it on its line."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from lightlint.fixes.code import Code

_CELL_MARK = re.compile(r"# ?(?:%%|In ?\[|\+|-\s*$)|#@")  # of an editor's cell, jupytext's and Colab's


def comments_above(code: Code, statement: cst.CSTNode, start: int) -> int:
    """Where the first line starts of the comments right above a statement that starts at an offset, as deep as it.

    The start of the statement's own line where there are none. Comments that open a file or a notebook's cell are its
    head, and belong to no statement.
    """
    source = code.source
    row = source.row_of(start)
    first = source.row_starts[row - 1]
    margin = code.margin(start)
    if margin is None:
        return first
    cell = source.cell_at(start)
    top = cell.start if cell else 0
    above = first
    for _ in range(_comment_lines(code, statement)):
        begin = source.row_starts[row - 2]
        line = source.text[begin:above]
        if not line.startswith(f"{margin}#") or _CELL_MARK.match(line, len(margin)):
            return above
        if begin <= top:
            return first
        above, row = begin, row - 1
    return above


def comment_behind(code: Code, line: cst.SimpleStatementLine) -> str:
    """The comment behind a line of statements, with the space before it; empty where there is none."""
    end = code.spans.span(line.body[-1])[1]
    tail = code.statement_line_end(end)
    if tail is None or not tail[1]:
        return ""
    text = code.source.text[end : tail[0]]
    return text[text.index("#") :]


def _comment_lines(code: Code, statement: cst.CSTNode) -> int:
    """How many lines right above a statement are comments for the parser, not lines of a string."""
    lines: Sequence[cst.EmptyLine] = getattr(statement, "leading_lines", ())
    block = code.spans.parent(statement)
    if isinstance(block, cst.Module) and block.body[0] is statement:
        lines = (*block.header, *lines)
    count = 0
    for line in reversed(lines):
        if line.comment is None:
            break
        count += 1
    return count
