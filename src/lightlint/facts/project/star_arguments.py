"""What a call gets from `**options`, where one dict of the module or of the function around holds it; made with `ast`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lightlint.facts.code.literals import constant
from lightlint.facts.code.unknown import UNKNOWN

Arguments = dict[str, object]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def arguments(tree: ast.Module, call: ast.Call, given: ast.expr) -> Arguments | None:
    """The constants by key that `**given` hands to a call, `UNKNOWN` for what is none; None where keys are out of sight."""
    function = next((each for each in _functions(tree) if _holds(each, call)), None)
    known = _parameters(function, _only_call(tree, function.name)) if function is not None else {}
    if isinstance(given, ast.Name):
        inner = function is not None and _binds(function, given.id)
        if function is not None and (
            inner or given.id in {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
        ):
            return _held(function, given.id, known)
        return _held(tree, given.id, {})
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Name):
        return _returned(tree, given)
    return _displayed(given, known)


def _returned(tree: ast.Module, call: ast.Call) -> Arguments | None:
    """What a function of the module returns for a call with constants."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    found = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name]
    if len(found) != 1 or found[0].decorator_list or found[0].args.vararg or found[0].args.kwarg:
        return None
    known = _parameters(found[0], call)
    returns = [each for each in ast.walk(found[0]) if isinstance(each, ast.Return)]
    value = returns[0].value if len(returns) == 1 and returns[0] is found[0].body[-1] else None
    if isinstance(value, ast.Name):
        return _held(found[0], value.id, known)
    return _displayed(value, known) if value is not None else None


def _displayed(value: ast.expr, known: Mapping[str, object]) -> Arguments | None:
    """The entries of a dict display or of `dict(...)`."""
    if isinstance(value, ast.Dict):
        keys = [each.value if isinstance(each, ast.Constant) else None for each in value.keys]
        pairs = [(key, _value(each, known)) for key, each in zip(keys, value.values, strict=True)]
    elif (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict" and not value.args
    ):
        pairs = [(each.arg, _value(each.value, known)) for each in value.keywords]
    else:
        return None
    named = {key: each for key, each in pairs if isinstance(key, str)}
    return named if len(named) == len(pairs) else None


def _held(
    scope: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef,
    name: str,
    known: Mapping[str, object],
) -> Arguments | None:
    """What a dict of one scope holds at its end, if every use of its name there is understood."""
    uses = sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(scope))
    entries: Arguments | None = None
    for statement, test in _statements(scope.body, True, known):
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        value = statement.value if isinstance(statement, (ast.Assign, ast.Return)) else None
        if isinstance(target, ast.Name) and target.id == name and value is not None:
            entries = _displayed(value, known) if entries is None and test is True else None
            if entries is None:
                return None
            uses -= 1
        elif isinstance(target, ast.Subscript) and _is_name(target.value, name):
            key = target.slice.value if isinstance(target.slice, ast.Constant) else None
            if entries is None or not isinstance(key, str) or value is None:
                return None
            if test is not False:
                entries[key] = _value(value, known) if test is True else UNKNOWN
            uses -= 1
        elif isinstance(value, ast.Name) and value.id == name:
            uses -= 1
    spread = [each for each in ast.walk(scope) if isinstance(each, ast.keyword) and each.arg is None]
    uses -= sum(_is_name(each.value, name) for each in spread)
    return entries if not uses else None


def _statements(
    body: list[ast.stmt], test: bool | None, known: Mapping[str, object]
) -> Iterator[tuple[ast.stmt, bool | None]]:
    """The simple statements of a scope, and whether they run: None where that is not known."""
    for each in body:
        if isinstance(each, ast.If):
            holds = _truth(each.test, known)
            yield from _statements(each.body, holds if test is True else test, known)
            yield from _statements(each.orelse, (None if holds is None else not holds) if test is True else test, known)
        elif isinstance(each, ast.With):
            yield from _statements(each.body, test, known)
        elif not isinstance(each, (*_FUNCTIONS, ast.ClassDef)):
            yield each, test


def _truth(test: ast.expr, known: Mapping[str, object]) -> bool | None:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        value = _value(test, known)
        return None if value is UNKNOWN else bool(value)
    one, other = _value(test.left, known), _value(test.comparators[0], known)
    compare = _COMPARE.get(type(test.ops[0]))
    numbers = isinstance(one, (int, float)) and isinstance(other, (int, float))
    return bool(compare(one, other)) if compare is not None and numbers else None


def _value(expression: ast.expr, known: Mapping[str, object]) -> object:
    return known.get(expression.id, UNKNOWN) if isinstance(expression, ast.Name) else constant(expression)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call | None) -> Arguments:
    """The constants that one call gives for the parameters of a function, which are bound nowhere else in it."""
    if call is None or any(isinstance(each, ast.Starred) for each in call.args):
        return {}
    names = [each.arg for each in function.args.args]
    given = dict(zip(names, call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
    values = {name: _value(each, {}) for name, each in given.items() if not _binds(function, name)}
    return {name: value for name, value in values.items() if value is not UNKNOWN}


def _only_call(tree: ast.Module, name: str) -> ast.Call | None:
    """The call of a function of the module, where its name stands nowhere else."""
    uses = [each for each in ast.walk(tree) if isinstance(each, ast.Name) and each.id == name]
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call) and each.func in uses]
    return calls[0] if len(uses) == len(calls) == 1 else None


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a module, those nested in others first."""
    return (each for each in reversed(list(ast.walk(tree))) if isinstance(each, _FUNCTIONS))


def _holds(function: ast.AST, node: ast.AST) -> bool:
    return any(each is node for each in ast.walk(function))


def _binds(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    stored = (each for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    return any(each.id == name for each in stored)


def _is_name(expression: ast.expr, name: str) -> bool:
    return isinstance(expression, ast.Name) and expression.id == name
