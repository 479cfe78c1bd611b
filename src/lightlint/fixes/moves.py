"""Move a statement within its block."""

from __future__ import annotations

import libcst as cst

from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft, join
from lightlint.fixes.statements import drop_statement, insert_after, insert_before

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
    return join(drop_statement(code, statement), insert_before(code, target, code.text_of(statement)))


def move_after(code: Code, statement: cst.BaseSmallStatement, target: cst.CSTNode | None) -> Draft | None:
    """Move a simple statement behind another of its block; None where they share none."""
    if not isinstance(target, Statement) or block_of(code, statement) is not block_of(code, target):
        return None
    return join(drop_statement(code, statement), insert_after(code, target, code.text_of(statement)))
