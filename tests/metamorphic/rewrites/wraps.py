"""A statement stands in a block that changes nothing: a context, a `try`, both branches of a test."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..program import DEFINITIONS, IMPORTS, Place, Program, change_statements
from ..quote import statements
from . import rewrite
from .values import TEST


@rewrite("reformatted", "the same statements, comments and line breaks gone", local=False)
def reformatted(program: Program) -> None:
    """Every rewrite does this much: what is lost here is lost in all of them."""


_KEPT = (*DEFINITIONS, *IMPORTS, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue)


def _wrap(program: Program, template: str, *, simple: bool = False) -> None:
    """Put the statements in the place of S in a template. Everywhere, only simple statements are wrapped."""

    def change(place: Place) -> Sequence[ast.stmt] | None:
        statement = place.statement
        if isinstance(statement, _KEPT) or ((simple or program.wanted is None) and hasattr(statement, "body")):
            return None
        return statements(template, S=[statement])

    change_statements(program, change)


@rewrite("if-else-twice", "if DEBUG: S\nelse: S")
def if_else_twice(program: Program) -> None:
    program.ask("import os")
    program.ask(TEST)
    _wrap(program, "if DEBUG:\n    S\nelse:\n    S")


@rewrite("try-finally", "try: S\nfinally: pass")
def try_finally(program: Program) -> None:
    _wrap(program, "try:\n    S\nfinally:\n    pass")


@rewrite("try-reraise", "try: S\nexcept Exception: raise")
def try_reraise(program: Program) -> None:
    _wrap(program, "try:\n    S\nexcept Exception:\n    raise")


@rewrite("nullcontext", "with contextlib.nullcontext(): S")
def nullcontext(program: Program) -> None:
    program.ask("import contextlib")
    _wrap(program, "with contextlib.nullcontext():\n    S")


@rewrite("exit-stack", "with ExitStack() as stack: x = stack.enter_context(E); S")
def exit_stack(program: Program) -> None:
    program.ask("from contextlib import ExitStack")
    name = program.fresh("stack")

    def change(place: Place) -> Sequence[ast.stmt] | None:
        statement = place.statement
        if not isinstance(statement, ast.With):
            return None
        entered: list[ast.stmt] = []
        for item in statement.items:
            call = ast.Call(
                ast.Attribute(ast.Name(name, ast.Load()), "enter_context", ast.Load()), [item.context_expr], []
            )
            entered.append(ast.Assign([item.optional_vars], call, lineno=0) if item.optional_vars else ast.Expr(call))
        return statements("with ExitStack() as NAME:\n    S", NAME=name, S=[*entered, *statement.body])

    change_statements(program.wanting(ast.With), change)


@rewrite("context-by-name", "context = E; with context: S")
def context_by_name(program: Program) -> None:
    name = program.fresh("context")

    def change(place: Place) -> Sequence[ast.stmt] | None:
        statement = place.statement
        if not isinstance(statement, ast.With):
            return None
        before = statements("NAME = VALUE", NAME=name, VALUE=statement.items[0].context_expr)
        statement.items[0].context_expr = ast.Name(name, ast.Load())
        return [*before, statement]

    change_statements(program.wanting(ast.With), change)
