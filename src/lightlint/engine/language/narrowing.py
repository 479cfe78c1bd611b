"""What a test that came out a certain way tells of the names in it."""

from __future__ import annotations

import ast

from lightlint.engine.execution import evaluate
from lightlint.engine.machine import Machine
from lightlint.values.core import Library, Scope, Sequence, Unknown


def narrow(machine: Machine, test: ast.expr, outcome: bool, scope: Scope) -> None:
    """Give names that hold something unknown what `isinstance` says that it is."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            narrow(machine, operand, not outcome, scope)
        case ast.BoolOp(op=operator, values=values) if isinstance(operator, ast.And) is outcome:
            for each in values:
                narrow(machine, each, outcome, scope)
        case ast.Call(func=ast.Name() as called, args=[ast.Name(id=name), kind]) if outcome:
            value, function = scope.names.get(name), evaluate(machine, called, scope)
            if isinstance(value, Unknown) and isinstance(function, Library) and function.path == "builtins.isinstance":
                wanted = evaluate(machine, kind, scope)
                if not isinstance(wanted, Sequence):  # one of several it may be any of
                    scope.bind(name, machine.models.annotated(machine, value, wanted, name, test))
