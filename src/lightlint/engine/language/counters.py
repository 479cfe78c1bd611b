"""What counts the turns of a `while`."""

from __future__ import annotations

import ast


def counts_inside(node: ast.While) -> bool:
    """Whether a loop inside counts, and the `while` itself does not: `while step < most` around a loop whose batches are steps."""
    if not isinstance(node.test, ast.Compare):
        return False
    counter = ast.unparse(node.test.left)
    nested: set[bool] = set()
    pending: list[tuple[ast.AST, bool]] = [(each, False) for each in node.body]
    while pending:
        part, inside = pending.pop()
        if isinstance(part, ast.AugAssign) and ast.unparse(part.target) == counter:
            nested.add(inside)
        inside |= isinstance(part, (ast.For, ast.AsyncFor, ast.While))
        pending += [(each, inside) for each in ast.iter_child_nodes(part) if not isinstance(each, ast.expr)]
    return nested == {True}
