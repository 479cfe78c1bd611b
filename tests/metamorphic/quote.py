"""Code templates: `statements("TMP = VALUE", TMP="held", VALUE=node)`; placeholders are names in capitals."""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Sequence
from functools import cache

Part = str | ast.expr | Sequence[ast.stmt]


@cache
def _parsed(template: str) -> ast.Module:
    return ast.parse(textwrap.dedent(template))


class _Fill(ast.NodeTransformer):
    """A placeholder stands for a name wherever Python has one, for an expression, or as a statement for statements."""

    def __init__(self, parts: dict[str, Part]) -> None:
        self.parts = parts

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        part = self.parts.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if part is None or isinstance(part, (str, ast.expr)):
            return self.generic_visit(node)
        return [copy.deepcopy(each) for each in part]

    def visit_Name(self, node: ast.Name) -> ast.AST:
        part = self.parts.get(node.id)
        if isinstance(part, ast.expr):
            return copy.deepcopy(part)
        return ast.Name(part, node.ctx) if isinstance(part, str) else node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name in ("name", "arg", "attr", "asname"):
            part = self.parts.get(getattr(node, name, None) or "")
            if isinstance(part, str):
                setattr(node, name, part)
        return super().generic_visit(node)


def statements(template: str, **parts: Part) -> list[ast.stmt]:
    """The statements of a template, filled in; parts are copied, so that one may stand in several places."""
    return _Fill(parts).visit(copy.deepcopy(_parsed(template))).body


def expression(template: str, **parts: Part) -> ast.expr:
    """The expression of a template, filled in."""
    (statement,) = statements(template, **parts)
    assert isinstance(statement, ast.Expr)
    return statement.value
