"""Which statements can stand in a function of their own, with what it is given and what it gives back."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .names import bound, contains, ends_bound, locals_of, read, reads_its_frame, surely_bound
from .program import DEFINITIONS, FUNCTIONS, IMPORTS, Place, blocks
from .quote import statements

_LEAVES = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete, *IMPORTS)


@dataclass(frozen=True)
class Piece:
    """Statements that can stand in a function: what it must be given and what it must give back."""

    body: list[ast.stmt]
    given: list[str]
    back: list[str]

    def call(self, function: ast.expr, given: Sequence[str]) -> ast.stmt:
        value = ast.Call(function, [ast.Name(name, ast.Load()) for name in given], [])
        if isinstance(self.body[-1], ast.Return):
            return ast.Return(value)
        if not self.back:
            return ast.Expr(value)
        names: list[ast.expr] = [ast.Name(name, ast.Store()) for name in self.back]
        return ast.Assign([names[0] if len(names) == 1 else ast.Tuple(names, ast.Store())], value, lineno=0)

    def function(self, name: str, given: Sequence[str]) -> ast.FunctionDef:
        (made,) = statements(f"def {name}({', '.join(given)}):\n    BODY", BODY=self.body)
        assert isinstance(made, ast.FunctionDef)
        if self.back:
            made.body += statements(f"return {', '.join(self.back)}")
        return made


def piece_of(place: Place, body: list[ast.stmt]) -> Piece | None:
    """What a function of these statements, the first of which the place names, needs; None where none is alike."""
    if _escapes(body) or contains(body, _LEAVES) or reads_its_frame(body):
        return None
    before = surely_bound(place)
    outer = set().union(*(locals_of(each) for each in place.outer[1:] if isinstance(each, FUNCTIONS)), set())
    own = locals_of(place.scope)
    binds, reads = bound(body), read(body)
    inside = {id(node) for each in body for node in ast.walk(each)}
    rest = [node for node in ast.walk(place.scope) if id(node) not in inside]
    used = {node.id for node in rest if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
    used |= {node.target.id for node in rest if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)}
    bound_elsewhere = {node.id for node in rest if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    if isinstance(place.scope, ast.Module):
        used |= binds
        functions = [node for node in ast.walk(place.scope) if isinstance(node, DEFINITIONS)]
        if binds & read(functions):
            return None
    maybe = (reads & own) - before - _bound_first(body)
    if maybe:
        return None
    given = (reads & own & before) | (reads & outer)
    back = binds & (used | (given & binds))
    ends = set().union(*map(ends_bound, body), set())
    if not back <= ends | given or (binds - before) & reads & bound_elsewhere - _bound_first(body):
        return None
    return Piece(body, sorted(given), sorted(back))


def _bound_first(body: list[ast.stmt]) -> set[str]:
    """The names that code binds before it reads them, wherever it goes."""
    found: set[str] = set()
    unclear: set[str] = set()

    def go(block: list[ast.stmt], known: set[str]) -> None:
        known = set(known)
        for each in block:
            inner = [one for part in blocks(each) for one in part] if not isinstance(each, DEFINITIONS) else []
            skip = {id(node) for one in inner for node in ast.walk(one)}
            heads = [node for node in ast.walk(each) if id(node) not in skip]
            reads = {node.id for node in heads if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
            if isinstance(each, ast.AugAssign):
                reads |= bound([each.target])
            unclear.update(reads - known - _targets(each))
            for part in blocks(each):
                go(part, known | _targets(each))
            known |= ends_bound(each)
            found.update(known | _targets(each))

    go(body, set())
    return found - unclear


def _targets(statement: ast.stmt) -> set[str]:
    """What a statement's head binds for its own block, and its comprehensions for themselves."""
    heads: list[ast.AST] = [statement.target] if isinstance(statement, (ast.For, ast.AsyncFor)) else []
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        heads = [item.optional_vars for item in statement.items if item.optional_vars]
    made = {
        node.id
        for comprehension in ast.walk(statement)
        if isinstance(comprehension, ast.comprehension)
        for node in ast.walk(comprehension.target)
        if isinstance(node, ast.Name)
    }
    return bound(heads) | made


def _escapes(body: Sequence[ast.AST], *, in_loop: bool = False) -> bool:
    """Whether code leaves a loop or function that it stands in (a return as the last statement does no harm)."""
    for number, each in enumerate(body):
        if isinstance(each, ast.Return) and not (number == len(body) - 1 and len(body) == 1 and not in_loop):
            return True
        if isinstance(each, (ast.Break, ast.Continue)) and not in_loop:
            return True
        if isinstance(each, (*FUNCTIONS, ast.ClassDef)):
            continue
        loop = in_loop or isinstance(each, (ast.For, ast.While))
        if any(_returns(inner) or _escapes(inner, in_loop=loop) for inner in blocks(each)):  # type: ignore[arg-type]
            return True
    return False


def _returns(block: list[ast.stmt]) -> bool:
    return any(isinstance(each, ast.Return) for each in block)
