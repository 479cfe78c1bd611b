"""Move a statement within its block, with the comments that belong to it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft, RawEdit, join
from lightlint.fixes.drafts.comments import comments_above
from lightlint.fixes.drafts.statements import (
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
    """Move a simple statement in front of another of its block; None where they share none, or a name changes on the way."""
    if not isinstance(target, Statement) or block_of(code, statement) is not block_of(code, target):
        return None
    if _depends(code, statement, target):
        return None
    lines, place = _own_lines(code, statement), line_before(code, target)
    if lines is None or place is None:
        return join(drop_statement(code, statement), insert_before(code, target, code.text_of(statement)))
    start, end = lines
    moved = code.source.text[start:end] + code.newline(start)
    return Draft((RawEdit(*whole_lines(code, start, end), ""), RawEdit(place, place, moved)))


def move_after(code: Code, statement: cst.BaseSmallStatement, target: cst.CSTNode | None) -> Draft | None:
    """Move a simple statement behind another of its block; None where they share none, or a name changes on the way."""
    if not isinstance(target, Statement) or block_of(code, statement) is not block_of(code, target):
        return None
    if _depends(code, statement, target):
        return None
    lines, place = _own_lines(code, statement), line_behind(code, target)
    if lines is None or place is None:
        return join(drop_statement(code, statement), insert_after(code, target, code.text_of(statement)))
    start, end = lines
    moved = code.newline(place) + code.source.text[start:end]
    return Draft((RawEdit(*whole_lines(code, start, end), ""), RawEdit(place, place, moved)))


def _depends(code: Code, statement: cst.CSTNode, target: cst.CSTNode) -> bool:
    """Whether a statement uses a name that one on the way to another binds, or binds one that is used there."""
    start, end = sorted((code.spans.span(statement)[0], code.spans.span(target)[0]))
    body = getattr(block_of(code, statement), "body", ())
    between = [
        line
        for line in (body.body if isinstance(body, cst.SimpleStatementSuite) else body)  # `if a: x; y`
        if start <= code.spans.span(line)[0] <= end and not _holds(line, statement)
    ]
    used, bound = set(_names(statement)), set(_bound(statement))
    return any(used & set(_bound(line)) or bound & set(_names(line)) for line in between)


def _holds(line: cst.CSTNode, statement: cst.CSTNode) -> bool:
    return line is statement or any(each is statement for each in line.children)


def _names(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.Name):
        yield node.value
    for child in node.children:
        if not (isinstance(node, cst.Attribute) and child is node.attr):
            yield from _names(child)


def _bound(node: cst.CSTNode) -> Iterator[str]:
    """The plain names that the parts of a node bind."""
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For)):
        yield from (each for each in _targets(node.target))
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        yield node.name.value
    elif isinstance(node, cst.AsName):
        yield from _targets(node.name)
    for child in node.children:
        yield from _bound(child)


def _targets(target: cst.CSTNode) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List, cst.StarredElement, cst.Element)):
        for child in target.children:
            yield from _targets(child)


def _own_lines(code: Code, statement: cst.BaseSmallStatement) -> tuple[int, int] | None:
    """From the comments above a statement to the end of its line, which it has to itself; None where it shares it."""
    line = line_of(code, statement)
    start, end = code.spans.span(statement)
    tail = code.statement_line_end(end)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1 or tail is None:
        return None
    return None if code.margin(start) is None else (comments_above(code, start), tail[0])
