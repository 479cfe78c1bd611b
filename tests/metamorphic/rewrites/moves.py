"""Code moves to a function of its own: a statement, the making of a value, a loop's body, the whole of a function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ..names import bound, contains, imports_of, locals_of, parameters, read, reads_its_frame
from ..pieces import Piece, piece_of
from ..program import (
    DEFINITIONS,
    FUNCTIONS,
    IMPORTS,
    Place,
    Program,
    change_statements,
    derive,
    is_docstring,
    origin,
)
from ..quote import statements
from ..sites import suspends
from . import rewrite

_STAY = (*DEFINITIONS, *IMPORTS, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue, ast.Delete, ast.Raise)


def _top(place: Place) -> ast.stmt:
    """The statement of the module that holds the place."""
    scopes = [*place.outer[1:], place.scope]
    return place.path[0][1] if isinstance(scopes[0], ast.Module) else scopes[0]


def _movable(program: Program, place: Place) -> bool:
    statement = place.statement
    return not isinstance(statement, _STAY) and (program.wanted is not None or not hasattr(statement, "body"))


def _put_before(program: Program, new: Sequence[tuple[ast.stmt, ast.FunctionDef]]) -> None:
    """Put functions in front of the statements of the module that call them."""
    for top, function in new:
        body = program.tree.body
        at = next(number for number, each in enumerate(body) if each is top or origin(each) == origin(top))
        body.insert(at, function)


def _self_renamed(function: ast.FunctionDef) -> ast.FunctionDef:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == "self":
            node.id = "owner"
        elif isinstance(node, ast.arg) and node.arg == "self":
            node.arg = "owner"
    return function


def _to_functions(program: Program, *, body_of_loops: bool = False, value_only: bool = False) -> None:
    stem = "helper" if not value_only else "made"
    new: list[tuple[ast.stmt, ast.FunctionDef]] = []

    def change(place: Place) -> Sequence[ast.stmt] | None:
        statement = place.statement
        body = [statement]
        inner = place
        if body_of_loops:
            if not isinstance(statement, ast.For):
                return None
            body = statement.body
            inner = replace(place, path=(*place.path, (statement.body, statement.body[0])))
        elif value_only:
            value = getattr(statement, "value", None)
            if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)) or not isinstance(value, ast.Call):
                return None
            body = [ast.Return(value)]
        elif not _movable(program, place):
            return None
        piece = _piece_of_value(place, body) if value_only else piece_of(inner, body)
        if piece is None or (contains(body, ast.NamedExpr) and value_only):
            return None
        name = f"{program.fresh(stem)}_{len(new) + 1}"
        function = _self_renamed(piece.function(name, piece.given))
        derive(function, origin(body[0]) if not value_only else origin(statement))
        new.append((_top(place), function))
        call = piece.call(ast.Name(name, ast.Load()), piece.given)
        if body_of_loops:
            derive(call, origin(body[0]))
            statement.body = [call]
            return [statement]
        if value_only:
            statement.value = call.value  # type: ignore[union-attr]
            return [statement]
        return [call]

    change_statements(program, change)
    _put_before(program, new)


def _piece_of_value(place: Place, body: list[ast.stmt]) -> Piece | None:
    piece = piece_of(place, body)
    return piece and replace(piece, back=[])


@rewrite("helper-function", "def helper(a): S; x = helper(a)")
def helper_function(program: Program) -> None:
    _to_functions(program)


@rewrite("factory-function", "def made(a): return E; x = made(a)")
def factory_function(program: Program) -> None:
    _to_functions(program, value_only=True)


@rewrite("loop-body-function", "for x in xs: helper(x)", local=False)
def loop_body_function(program: Program) -> None:
    _to_functions(program, body_of_loops=True)


@rewrite("helper-method", "def _helper(self, a): S; self._helper(a)")
def helper_method(program: Program) -> None:
    new: list[tuple[ast.ClassDef, ast.FunctionDef]] = []

    def change(place: Place) -> Sequence[ast.stmt] | None:
        scope = place.scope
        if place.owner is None or not isinstance(scope, FUNCTIONS) or not _movable(program, place):
            return None
        if parameters(scope)[:1] != ["self"] or any("static" in ast.unparse(each) for each in scope.decorator_list):
            return None
        piece = piece_of(place, [place.statement])
        if piece is None:
            return None
        given = [name for name in piece.given if name != "self"]
        name = f"_{program.fresh('helper')}_{len(new) + 1}"
        function = piece.function(name, ["self", *given])
        derive(function, origin(place.statement))
        new.append((place.owner, function))
        return [piece.call(ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load()), given)]

    change_statements(program, change)
    for owner, function in new:
        owner.body.append(function)


@rewrite("helper-closure", "def helper(): S; helper()")
def helper_closure(program: Program) -> None:
    def change(place: Place) -> Sequence[ast.stmt] | None:
        if not _movable(program, place):
            return None
        piece = piece_of(place, [place.statement])
        if piece is None:
            return None
        name = program.fresh("helper")
        given = [each for each in piece.given if each in bound(piece.body)]
        return [piece.function(name, given), piece.call(ast.Name(name, ast.Load()), given)]

    change_statements(program, change)


@rewrite("module-to-main", "def main(): S ...; main()", local=False)
def module_to_main(program: Program) -> None:
    """The statements of the module, where no function reads what they bind."""
    body = program.tree.body
    runs = [each for each in body if not isinstance(each, (*DEFINITIONS, *IMPORTS)) and not is_docstring(each)]
    last = max((number for number, each in enumerate(body) if isinstance(each, (*DEFINITIONS, *IMPORTS))), default=-1)
    if not program.alone or not runs or any(each in runs for each in body[: last + 1]) or _has_guard(runs):
        return
    functions = [node for node in body if isinstance(node, DEFINITIONS)]
    if bound(runs) & (_free(functions) | imports_of(program.tree)) or reads_its_frame(runs) or suspends(program.tree):
        return
    if bound(runs) & bound(functions):
        return
    name = program.fresh("main")
    made = statements("def NAME():\n    BODY\nNAME()", NAME=name, BODY=runs)
    derive(made[0], -1)
    derive(made[1], origin(runs[-1]))
    program.tree.body = [each for each in body if each not in runs] + made


def _free(definitions: Sequence[ast.stmt]) -> set[str]:
    """The names that definitions read and do not bind themselves (or more)."""
    found: set[str] = set()
    for each in definitions:
        if isinstance(each, ast.ClassDef):
            heads = [*each.bases, *each.decorator_list, *each.keywords]
            found |= read(heads) | _free([one for one in each.body if isinstance(one, DEFINITIONS)])
            found |= read(one for one in each.body if not isinstance(one, DEFINITIONS))
        elif isinstance(each, FUNCTIONS):
            found |= read([each]) - locals_of(each) | read([each.args, *each.decorator_list])
    return found


def _has_guard(runs: Sequence[ast.stmt]) -> bool:
    return any("__name__" in ast.unparse(each) or "__all__" in ast.unparse(each) for each in runs)


@rewrite("body-in-closure", "def f(a):\n    def run(): ...\n    return run()", local=False)
def body_in_closure(program: Program) -> None:
    for scope in [node for node in ast.walk(program.tree) if isinstance(node, ast.FunctionDef)]:
        start = 1 if is_docstring(scope.body[0]) else 0
        body = scope.body[start:]
        rebinds = bound(body) & set(parameters(scope))
        if (
            len(body) < 2
            or rebinds
            or contains(body, (ast.Global, ast.Nonlocal))
            or reads_its_frame(body)
            or suspends(scope)
        ):
            continue
        name = program.fresh("run")
        made = statements("def NAME():\n    BODY\nreturn NAME()", NAME=name, BODY=body)
        for each in made:
            derive(each, origin(scope))
        scope.body = [*scope.body[:start], *made]
