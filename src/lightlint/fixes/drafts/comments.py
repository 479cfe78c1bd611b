"""The comments that belong to a statement: those right above it, and the one behind it on its line."""

from __future__ import annotations

import re

import libcst as cst

from lightlint.fixes.code import Code

_CELL_MARK = re.compile(r"# ?(?:%%|In ?\[|\+|-\s*$)|#@")  # of an editor's cell, jupytext's and Colab's


def comments_above(code: Code, start: int) -> int:
    """Where the first line starts of the comments right above a statement at an offset, as deep as it.

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
    while above > top:
        row -= 1
        begin = source.row_starts[row - 1]
        line = source.text[begin:above]
        if not line.startswith(f"{margin}#") or _CELL_MARK.match(line, len(margin)) or _is_in_string(code, begin):
            return above
        above = begin
    return first


def comment_behind(code: Code, line: cst.SimpleStatementLine) -> str:
    """The comment behind a line of statements, with the space before it; empty where there is none."""
    end = code.spans.span(line.body[-1])[1]
    tail = code.statement_line_end(end)
    if tail is None or not tail[1]:
        return ""
    text = code.source.text[end : tail[0]]
    return text[text.index("#") :]


def _is_in_string(code: Code, line_start: int) -> bool:
    """Whether a line goes on from the one above."""
    return code.source.logical_line_at(line_start).start != line_start
