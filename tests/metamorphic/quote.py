"""Code templates: `statements("TMP = VALUE", TMP="held", VALUE=node)`; placeholders are names in capitals."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)
Part = str | ast.expr | Sequence[ast.stmt]


def twin(node: Node) -> Node:
    """A copy of a tree: `copy.deepcopy` takes five times as long, and a rewrite copies much."""
    made = type(node).__new__(type(node))
    for name, value in vars(node).items():
        vars(made)[name] = _twin_of(value)
    return made


def _twin_of(value: object) -> object:
    if isinstance(value, ast.AST):
        return twin(value)
    return [_twin_of(each) for each in value] if isinstance(value, list) else value


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
        return [twin(each) for each in part]

    def visit_Name(self, node: ast.Name) -> ast.AST:
        part = self.parts.get(node.id)
        if isinstance(part, ast.expr):
            return twin(part)
        return ast.Name(part, node.ctx) if isinstance(part, str) else node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name in ("name", "arg", "attr", "asname"):
            part = self.parts.get(getattr(node, name, None) or "")
            if isinstance(part, str):
                setattr(node, name, part)
        return super().generic_visit(node)


def statements(template: str, **parts: Part) -> list[ast.stmt]:
    """The statements of a template, filled in; parts are copied, so that one may stand in several places."""
    return _Fill(parts).visit(twin(_parsed(template))).body


def expression(template: str, **parts: Part) -> ast.expr:
    """The expression of a template, filled in."""
    (statement,) = statements(template, **parts)
    assert isinstance(statement, ast.Expr)
    return statement.value
