"""Whether an attribute that `__init__` sets hangs on what two objects of a class were given differently."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from lightlint.syntax import syntax_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lightlint.values.core import Site

_BOUND = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.With, ast.NamedExpr)


def call_at(text: str, site: Site | None) -> ast.Call | None:
    """The call at a place of a file."""
    try:
        nodes = ast.walk(syntax_of(text)) if site is not None else ()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls = (each for each in nodes if isinstance(each, ast.Call))
    return next((each for each in calls if site is not None and (each.lineno, each.col_offset) == site[1:3]), None)


def given_apart(init: ast.FunctionDef, one: ast.Call, other: ast.Call) -> set[str] | None:
    """The parameters that two calls give other expressions for; None where that is not known."""
    first, second = _given(init, one), _given(init, other)
    if first is None or second is None or one is other:
        return None
    return {name for name in {*first, *second} if first.get(name) != second.get(name)}


def _given(init: ast.FunctionDef, call: ast.Call) -> dict[str, str] | None:
    names = [each.arg for each in (*init.args.posonlyargs, *init.args.args)][1:]
    starred = any(isinstance(each, ast.Starred) for each in call.args) or any(not each.arg for each in call.keywords)
    if starred or len(call.args) > len(names):
        return None
    given = dict(zip(names, map(ast.unparse, call.args), strict=False))
    return given | {each.arg: ast.unparse(each.value) for each in call.keywords if each.arg}


def hangs_on(init: ast.FunctionDef, given: set[str], attribute: str) -> bool:
    """Whether an attribute is made of some parameters, by the order of the statements; also where another method makes it."""
    tainted, name = set(given), f"self.{attribute}"
    bound = False
    for target, source in _stores(init):
        names = _names(source) if source is not None else set()
        by_method = any(each.startswith("self.") for each in tainted) and _calls_own(source)
        replaces = isinstance(target, (ast.Name, ast.Attribute, ast.Tuple)) and source is not None
        for each in _names(target):
            if by_method or not names.isdisjoint(tainted) or (not replaces and not _names(target).isdisjoint(tainted)):
                tainted.add(each)
            elif replaces:
                tainted.discard(each)
        bound |= name in _names(target)
    return name in tainted or not bound


def _stores(init: ast.FunctionDef) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What the statements of a function bind, and change by a method, in their order, and of what."""
    nodes = (each for each in ast.walk(init) if isinstance(each, (*_BOUND, ast.Expr)))
    for node in sorted(nodes, key=lambda each: (each.lineno, each.col_offset)):
        match node:
            case ast.With(items=items):
                yield from ((each.optional_vars, each.context_expr) for each in items if each.optional_vars is not None)
            case ast.For(target=target, iter=source):
                yield target, source
            case ast.Assign(targets=targets, value=source):
                yield from ((target, source) for target in targets)
            case ast.AugAssign(target=target, value=source):
                yield target, ast.Tuple([target, source])
            case ast.AnnAssign(target=target, value=source) | ast.NamedExpr(target=target, value=source):
                yield target, source
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=target)) as call):
                yield ast.Tuple([target, *call.args]), None


def _calls_own(source: ast.expr | None) -> bool:
    calls = (each.func for each in ast.walk(source) if isinstance(each, ast.Call)) if source is not None else ()
    return any(isinstance(each, ast.Attribute) and _is_self(each.value) for each in calls)


def _names(node: ast.AST) -> set[str]:
    """The names, and the attributes of `self`, in an expression."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and each.id != "self"}
    own = {f"self.{each.attr}" for each in ast.walk(node) if isinstance(each, ast.Attribute) and _is_self(each.value)}
    return names | own


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
