"""Move a statement within its block, with the comments that belong to it."""

from __future__ import annotations

import libcst as cst

from lightlint.fixes.code import Code
from lightlint.fixes.comments import comments_above
from lightlint.fixes.draft import Draft, RawEdit, join
from lightlint.fixes.statements import (
    drop_statement,
    insert_after,
    insert_before,
    line_before,
    line_behind,
    line_of,
    whole_lines,
)

Statement = cst.BaseSmallStatement | cst.BaseCompoundStatement


def block_of(code: Code, statement: cst.CSTNode | None) -> cst.CSTNode | None:
    """The block in which a statement stands as one of its lines."""
    if isinstance(statement, cst.BaseSmallStatement):
        statement = code.spans.parent(statement)
    return code.spans.parent(statement) if statement is not None else None


def move_before(code: Code, statement: cst.BaseSmallStatement, target: cst.CSTNode | None) -> Draft | None:
    """Move a simple statement in front of another of its block; None where they share none."""
    if not isinstance(target, Statement) or block_of(code, statement) is not block_of(code, target):
        return None
    lines, place = _own_lines(code, statement), line_before(code, target)
    if lines is None or place is None:
        return join(drop_statement(code, statement), insert_before(code, target, code.text_of(statement)))
    start, end = lines
    moved = code.source.text[start:end] + code.newline(start)
    return Draft((RawEdit(*whole_lines(code, start, end), ""), RawEdit(place, place, moved)))


def move_after(code: Code, statement: cst.BaseSmallStatement, target: cst.CSTNode | None) -> Draft | None:
    """Move a simple statement behind another of its block; None where they share none."""
    if not isinstance(target, Statement) or block_of(code, statement) is not block_of(code, target):
        return None
    lines, place = _own_lines(code, statement), line_behind(code, target)
    if lines is None or place is None:
        return join(drop_statement(code, statement), insert_after(code, target, code.text_of(statement)))
    start, end = lines
    moved = code.newline(place) + code.source.text[start:end]
    return Draft((RawEdit(*whole_lines(code, start, end), ""), RawEdit(place, place, moved)))


def _own_lines(code: Code, statement: cst.BaseSmallStatement) -> tuple[int, int] | None:
    """From the comments above a statement to the end of its line, which it has to itself; None where it shares it."""
    line = line_of(code, statement)
    start, end = code.spans.span(statement)
    tail = code.statement_line_end(end)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1 or tail is None:
        return None
    return None if code.margin(start) is None else (comments_above(code, start), tail[0])
