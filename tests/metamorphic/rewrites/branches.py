"""Branches turned round: another test or another order that lets the same statements run."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..names import contains
from ..program import FUNCTIONS, Place, Program, change_statements
from ..quote import expression, statements
from ..sites import rebinds
from . import rewrite


def _not(test: ast.expr) -> ast.expr:
    return (
        test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else expression("not T", T=test)
    )


def _is_main_guard(statement: ast.If) -> bool:
    return "__name__" in ast.unparse(statement.test)


@rewrite("negated-test", "if not T: B\nelse: A")
def negated_test(program: Program) -> None:
    def change(place: Place) -> Sequence[ast.stmt] | None:
        statement = place.statement
        if not isinstance(statement, ast.If) or _is_main_guard(statement):
            return None
        other = statement.orelse or [ast.Pass()]
        return [ast.If(_not(statement.test), other, statement.body)]

    change_statements(program.wanting(ast.If), change)


@rewrite("early-exit", "if not T: continue\nS")
def early_exit(program: Program) -> None:
    """The last `if` of a loop body or function becomes a test that leaves it."""

    def change(place: Place) -> Sequence[ast.stmt] | None:
        statement = place.statement
        if not isinstance(statement, ast.If) or statement.orelse or place.block[-1] is not statement:
            return None
        outer = place.path[-2][1] if len(place.path) > 1 else None
        if (
            outer is None
            and isinstance(place.scope, FUNCTIONS)
            and not contains(place.scope.body, (ast.Yield, ast.YieldFrom))
        ):
            leave: ast.stmt = ast.Return(None)
        elif isinstance(outer, (ast.For, ast.While)) and place.block is outer.body:
            leave = ast.Continue()
        else:
            return None
        return [ast.If(_not(statement.test), [leave], []), *statement.body]

    change_statements(program.wanting(ast.If), change)


@rewrite("named-test", "flag = T; if flag: A")
def named_test(program: Program) -> None:
    def change(place: Place) -> Sequence[ast.stmt] | None:
        statement = place.statement
        if not isinstance(statement, ast.If) or rebinds(statement.test) or _is_main_guard(statement):
            return None
        name = program.fresh("flag")
        before = statements("FLAG = T", FLAG=name, T=statement.test)
        statement.test = ast.Name(name, ast.Load())
        return [*before, statement]

    change_statements(program.wanting(ast.If), change)


@rewrite("test-in-function", "def holds(): return T; if holds(): A")
def test_in_function(program: Program) -> None:
    def change(place: Place) -> Sequence[ast.stmt] | None:
        statement = place.statement
        if not isinstance(statement, ast.If) or rebinds(statement.test) or _is_main_guard(statement):
            return None
        name = program.fresh("holds")
        before = statements("def HOLDS():\n    return T", HOLDS=name, T=statement.test)
        statement.test = expression("HOLDS()", HOLDS=name)
        return [*before, statement]

    change_statements(program.wanting(ast.If), change)


@rewrite("nested-tests", "if A:\n    if B: S")
def nested_tests(program: Program) -> None:
    def change(place: Place) -> Sequence[ast.stmt] | None:
        match place.statement:
            case ast.If(test=ast.BoolOp(op=ast.And(), values=[first, *rest]), body=body, orelse=[]):
                second = rest[0] if len(rest) == 1 else ast.BoolOp(ast.And(), rest)
                return [ast.If(first, [ast.If(second, body, [])], [])]
        return None

    change_statements(program.wanting(ast.If), change)
