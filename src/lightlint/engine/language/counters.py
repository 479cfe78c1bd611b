"""What counts the turns of a `while`."""

from __future__ import annotations

import ast


def counts_inside(node: ast.While) -> bool:
    """Whether a loop inside counts, and the `while` itself does not: `while step < most` around a loop whose batches are steps."""
    if not isinstance(node.test, ast.Compare):
        return False
    sides = {ast.unparse(each) for each in (node.test.left, *node.test.comparators)}
    nested: set[bool] = set()
    pending: list[tuple[ast.AST, bool]] = [(each, False) for each in node.body]
    while pending:
        part, inside = pending.pop()
        if _counted(part) in sides:
            nested.add(inside)
        inside |= isinstance(part, (ast.For, ast.AsyncFor, ast.While))
        pending += [(each, inside) for each in ast.iter_child_nodes(part) if not isinstance(each, ast.expr)]
    return nested == {True}


def _counted(statement: ast.AST) -> str:
    """What a statement counts on: `step += 1`, `step = step + 1`."""
    if isinstance(statement, ast.AugAssign):
        return ast.unparse(statement.target)
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp) and len(statement.targets) == 1:
        target = ast.unparse(statement.targets[0])
        return target if target in {ast.unparse(statement.value.left), ast.unparse(statement.value.right)} else ""
    return ""
