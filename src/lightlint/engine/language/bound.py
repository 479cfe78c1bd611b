"""Which names a file or a function binds anywhere in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, *_COMPREHENSIONS)


def may_bind(tree: ast.Module, name: str) -> bool:
    """Whether something in a file may bind a name: an assignment, parameter, import, `global`, or `from a import *`."""
    bound = _bound_in(tree)
    return name in bound or "*" in bound or (name.startswith("__") and name.endswith("__"))


@lru_cache(maxsize=256)
def stored_in(function: ast.AST) -> frozenset[str]:
    """The names that statements give values to anywhere in a function, in those within it, too."""
    names = (each for each in ast.walk(function) if isinstance(each, ast.Name))
    return frozenset(each.id for each in names if isinstance(each.ctx, ast.Store))


@lru_cache(maxsize=256)
def locals_of(function: ast.AST) -> frozenset[str]:
    """The names that are a function's own as statements of it give them values: unbound until one has run."""
    own, elsewhere = set(), set()
    left = [*getattr(function, "body", ())] if not isinstance(function, ast.Lambda) else []
    while left:
        node = left.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere |= {*node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        if not isinstance(node, _SCOPES):
            left += ast.iter_child_nodes(node)
    return frozenset(own - elsewhere)


@lru_cache(maxsize=64)
def statements_bind(tree: ast.Module) -> frozenset[str]:
    """The names of a file that nothing gives values to but statements outside its functions and classes."""
    if "*" in _bound_in(tree):
        return frozenset()
    elsewhere = {name for node in ast.walk(tree) if isinstance(node, _SCOPES) for name in _bound_within(node)}
    others = {name for node in ast.walk(tree) if not isinstance(node, ast.Name) for name in _bound_by(node)}
    return locals_of(tree) - elsewhere - others


def _bound_within(scope: ast.AST) -> Iterator[str]:
    return (name for node in ast.walk(scope) for name in _bound_by(node))


@lru_cache(maxsize=64)
def _bound_in(tree: ast.Module) -> frozenset[str]:
    return frozenset(name for node in ast.walk(tree) for name in _bound_by(node))


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=alias):
            yield alias or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
