"""How the parts of a program are run: each kind of expression and statement by who knows it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from collections.abc import Sequence as Statements
from typing import Any

from lightlint.engine.machine import BudgetSpentError, Machine
from lightlint.values.core import Library, Scope, Sequence, Site, Unknown, Value


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


class _Expressions(dict[type[ast.expr], Callable[[Machine, Any, Scope], Value]]):
    """By kind; of one that nobody knows nothing is known."""

    def __missing__(self, kind: type[ast.expr]) -> Callable[[Machine, Any, Scope], Value]:
        return _unknown


def _unknown(_: Machine, __: ast.expr, ___: Scope) -> Value:
    return Unknown()


EXPRESSIONS = _Expressions()
"""What an expression of a kind gives."""

SIMPLE: dict[type[ast.stmt], Callable[[Machine, Any, Scope], None]] = {}
"""What a statement of a kind does that holds no other."""

COMPOUND: dict[type[ast.AST], Callable[[Machine, Any, Scope], Steps]] = {}
"""What a statement of a kind does that holds others, or (by `ast.Yield`) that yields."""

_MAY_YIELD = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
_YIELDS = (ast.Yield, ast.YieldFrom)


def evaluate(machine: Machine, node: ast.expr, scope: Scope) -> Value:
    """The value of an expression."""
    return EXPRESSIONS[type(node)](machine, node, scope)


def annotation_of(machine: Machine, node: ast.expr, scope: Scope) -> Value:
    """What an annotation names: of a container a sequence of that, of `Optional` and its like what they are around."""
    named, optional = _named(node)
    inner, kind = (_elements(named), _last(named.value)) if isinstance(named, ast.Subscript) else (None, "")
    if inner is not None:
        return Sequence([annotation_of(machine, inner, scope)], kind.lower(), more=True)
    if named is None:
        return Unknown()
    found = evaluate(machine, named, scope)
    return Unknown() if optional and isinstance(found, Library) and found.path.startswith("builtins.") else found


def _named(node: ast.expr) -> tuple[ast.expr | None, bool]:
    """What an annotation is around, also one in quotes, and whether it may be None instead; None for several things."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _named(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return None, False
    choices: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        choices = [node.left, node.right]
    elif isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        word = _last(node.value)
        if word in ("Union", "Optional"):
            choices = [*parts, *([ast.Constant(None)] if word == "Optional" else [])]
        elif word in _AROUND:
            return _named(parts[0])
    if not choices:
        return node, False
    left = [each for each in choices if not (isinstance(each, ast.Constant) and each.value is None)]
    return (_named(left[0])[0] if len(left) == 1 else None), len(left) < len(choices)


def _elements(node: ast.Subscript) -> ast.expr | None:
    """What a container annotated so holds, None where that is no one thing."""
    if _last(node.value) not in _CONTAINERS:
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    alike = len(parts) == 1 or (isinstance(parts[-1], ast.Constant) and parts[-1].value is ...)
    return parts[0] if alike else None


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


_TENSORS = [
    "Float",
    "Int",
    "UInt",
    "Bool",
    "Num",
    "Real",
    "Inexact",
    "Shaped",
    "Complex",
    "Float16",
    "Float32",
    "Int64",
]
"""jaxtyping's names of kinds of tensors, as in `Float[Tensor, "batch 3"]`."""
_AROUND = frozenset(["Annotated", "Final", "ClassVar", "Required", "NotRequired", *_TENSORS])
_CONTAINERS = frozenset(["list", "List", "tuple", "Tuple", "Sequence", "set", "Set"])


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
