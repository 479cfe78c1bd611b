"""How the parts of a program are run: each kind of expression and statement by who knows it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from collections.abc import Sequence as Statements
from typing import Any

from lightlint.engine.machine import BudgetSpentError, Machine
from lightlint.values.core import Scope, Site, Unknown, Value


class LeaveLoop(Exception):  # noqa: N818 - control flow of the program, no error
    """`break`."""


class NextTurn(Exception):  # noqa: N818
    """`continue`."""


class Returned(Exception):  # noqa: N818
    """`return`."""

    def __init__(self, value: Value, site: Site) -> None:
        self.value, self.site = value, site


class Raised(Exception):  # noqa: N818
    """The program raised something."""

    def __init__(self, value: Value) -> None:
        self.value = value


Steps = Generator[Value, None, None]
"""The run of a block: it stops at each `yield` of the program with the value yielded."""

EXPRESSIONS: dict[type[ast.expr], Callable[[Machine, Any, Scope], Value]] = {}
"""What an expression of a kind gives."""

SIMPLE: dict[type[ast.stmt], Callable[[Machine, Any, Scope], None]] = {}
"""What a statement of a kind does that holds no other."""

COMPOUND: dict[type[ast.AST], Callable[[Machine, Any, Scope], Steps]] = {}
"""What a statement of a kind does that holds others, or (by `ast.Yield`) that yields."""

_MAY_YIELD = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
_YIELDS = (ast.Yield, ast.YieldFrom)


def evaluate(machine: Machine, node: ast.expr, scope: Scope) -> Value:
    """The value of an expression."""
    handler = EXPRESSIONS.get(type(node))
    return handler(machine, node, scope) if handler is not None else Unknown()


def annotation_of(machine: Machine, node: ast.expr, scope: Scope) -> Value:
    """What an annotation names; one in quotes is read, too."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return Unknown()
    return evaluate(machine, node, scope)


def run(machine: Machine, body: Statements[ast.stmt], scope: Scope) -> None:
    """Execute statements of a frame that does not yield."""
    for _ in block(machine, body, scope):
        pass


def block(machine: Machine, body: Statements[ast.stmt], scope: Scope) -> Steps:
    """Execute statements in order, stopping at each `yield`."""
    for statement in body:
        machine.steps += 1  # as `machine.tick`, without a call for each statement
        if machine.steps > machine.budget:
            raise BudgetSpentError
        kind = type(statement)
        simple = SIMPLE.get(kind)
        if simple is not None:
            if isinstance(statement, _MAY_YIELD) and isinstance(statement.value, _YIELDS):
                yield from COMPOUND[ast.Yield](machine, statement, scope)
                continue
            simple(machine, statement, scope)
        elif kind in COMPOUND:
            yield from COMPOUND[kind](machine, statement, scope)
