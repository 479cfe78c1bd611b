"""What the classes of a module hang on."""

from __future__ import annotations

import ast
import re

from lightlint.syntax import rows_of

_WORD = re.compile(r"[A-Za-z_]\w*")


def needed_by_classes(tree: ast.Module, text: str) -> list[ast.stmt]:
    """The statements of a module that its classes may hang on: they themselves, what they name, what that names, and so on;
    imports and what holds other statements stay."""
    rows = rows_of(text)
    needed: set[str] = set()
    kept: set[int] = set()
    left = tree.body
    while found := [each for each in left if _binds(each) is None or _binds(each) in needed]:
        kept |= {id(each) for each in found}
        left = [each for each in left if id(each) not in kept]
        needed.update(*(_WORD.findall("".join(rows[each.lineno - 1 : each.end_lineno])) for each in found))
    return [each for each in tree.body if id(each) in kept]


def _binds(statement: ast.stmt) -> str | None:
    """The name that a statement gives a value, or a part of whose value it changes; "" for none, None where it has to stay."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return _root(target)
        case ast.Expr(value=value):
            return _root(value) or ""
    return None


def _root(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
