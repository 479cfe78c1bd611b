"""Places in statements whose value may be taken elsewhere without a change of what runs in which order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .names import is_dotted, root_name
from .program import DEFINITIONS, blocks

UNTOUCHED = {"super", "locals", "vars", "dir", "globals", "eval", "exec", "save_hyperparameters"}
_SUSPENDS = (ast.Await, ast.Yield, ast.YieldFrom)


@dataclass(frozen=True)
class Slot:
    """Where an expression stands."""

    owner: Any
    field: str
    index: int | None = None

    @property
    def value(self) -> ast.expr:
        held = getattr(self.owner, self.field)
        return held if self.index is None else held[self.index]

    def put(self, value: ast.expr) -> None:
        if self.index is None:
            setattr(self.owner, self.field, value)
        else:
            getattr(self.owner, self.field)[self.index] = value


def root(statement: ast.stmt) -> Slot | None:
    """The expression that a statement evaluates once, before all else."""
    match statement:
        case ast.AugAssign(target=ast.Name()) | ast.Assign() | ast.Expr():
            return Slot(statement, "value")
        case ast.AnnAssign(value=ast.expr()) | ast.Return(value=ast.expr()):
            return Slot(statement, "value")
        case ast.For():
            return Slot(statement, "iter")
        case ast.If():
            return Slot(statement, "test")
        case ast.With(items=[first, *_]):
            return Slot(first, "context_expr")
    return None


def suspends(node: ast.AST) -> bool:
    return any(isinstance(each, _SUSPENDS) for each in ast.walk(node))


def rebinds(node: ast.AST) -> bool:
    return any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))


def root_call(statement: ast.stmt) -> Slot | None:
    """The call that a statement makes first of those with a plain callee: `f(x)` in `y = f(x).g(z)`."""
    slot = root(statement)
    while slot and isinstance(slot.value, ast.Call):
        call = slot.value
        if is_dotted(call.func):
            return slot if root_name(call.func) not in UNTOUCHED and not _untouched(call) else None
        slot = Slot(call.func, "value") if isinstance(call.func, ast.Attribute) else None
    return None


def _untouched(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in UNTOUCHED


def carried(statement: ast.stmt, imported: set[str]) -> Slot | None:
    """The value that a statement hands on: what it assigns, returns or loops over, or calls a method of."""
    slot = root(statement)
    if slot is None or isinstance(statement, ast.If):
        return None
    if not isinstance(statement, ast.Expr):
        plain = (
            (ast.Constant, ast.Lambda) if isinstance(statement, ast.Return) else (ast.Constant, ast.Name, ast.Lambda)
        )
        return None if isinstance(slot.value, (*plain, ast.Await)) or reads_super(slot.value) else slot
    call = slot.value
    if not isinstance(call, ast.Call) or reads_super(call):
        return None
    if isinstance(call.func, ast.Attribute):
        receiver = call.func.value
        of_import = root_name(receiver) in imported and is_dotted(receiver)
        if not of_import and not (isinstance(receiver, ast.Name) and receiver.id == "self"):
            return Slot(call.func, "value")
    return next((each for each in arguments(call) if not isinstance(each.value, ast.Constant)), None)


def reads_super(node: ast.AST) -> bool:
    """Whether code asks for the function it runs in."""
    return any(
        (isinstance(each, ast.Name) and each.id in UNTOUCHED)
        or (isinstance(each, ast.Attribute) and each.attr in UNTOUCHED)
        for each in ast.walk(node)
    )


def arguments(call: ast.Call) -> Iterator[Slot]:
    """The arguments of a call with a plain callee that can be evaluated before it, in order.

    All before a `*` or `**`: that is taken apart at the call itself.
    """
    if not is_dotted(call.func):
        return
    for index, each in enumerate(call.args):
        if isinstance(each, ast.Starred):
            return
        yield Slot(call, "args", index)
    for keyword in call.keywords:
        if keyword.arg is None:
            return
        yield Slot(keyword, "value")


def calls_in(statement: ast.stmt) -> Iterator[Slot]:
    """Every call of a statement itself (not of its blocks), inner ones first."""
    inner = {id(each) for block in blocks(statement) for each in block}
    if isinstance(statement, DEFINITIONS):
        return
    yield from _calls(statement, inner)


def _calls(node: ast.AST, inner: set[int]) -> Iterator[Slot]:
    for name, held in ast.iter_fields(node):
        for index, each in enumerate(held) if isinstance(held, list) else [(None, held)]:
            if not isinstance(each, ast.AST) or id(each) in inner or isinstance(each, ast.stmt):
                continue
            yield from _calls(each, inner)
            if isinstance(each, ast.Call):
                yield Slot(node, name, index)
