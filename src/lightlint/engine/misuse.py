"""What Python raises over: something is asked of a value that no such value has."""

from __future__ import annotations

import ast

from lightlint.engine.events.python import Misused
from lightlint.engine.machine import Machine
from lightlint.values.core import Library, NotYet, Sequence, Value
from lightlint.values.training import Instance

_ONE = ("optimizer", "schedule", "loader")  # kinds of which a list is easily taken for one, or one for a list
_IN_PARTS = ("[]", "iter", "len", "unpack")


def is_caught(machine: Machine, *errors: str) -> bool:
    """Whether an open `try` catches one of some errors and goes on."""
    handlers = [each for tried in machine.tries for each in tried.handlers if not isinstance(each.body[-1], ast.Raise)]
    types = [
        part for each in handlers for part in (each.type.elts if isinstance(each.type, ast.Tuple) else [each.type])
    ]
    return bool({getattr(each, "id", "") for each in types} & {"", "Exception", "BaseException", *errors})


def ask(machine: Machine, value: Value, asked: str, node: ast.AST, width: int = 0) -> None:
    """Note what is asked of a value, if it cannot give it: an attribute, or a part, where `asked` tells how."""
    if not _has(value, asked, width) and not is_caught(machine, "AttributeError", "TypeError", "ValueError"):
        machine.emit(Misused(machine.where(node), value, asked, width))


def _has(value: Value, asked: str, width: int) -> bool:
    if isinstance(value, NotYet):
        return asked not in _IN_PARTS and hasattr(None, asked)
    if isinstance(value, Sequence):
        if not value.giver or asked in ("[]", "iter", "len"):
            return True
        return (not width or len(value.items) == width) if asked == "unpack" else hasattr(list, asked)
    one = isinstance(value, Instance) and value.kind in _ONE and isinstance(value.cls, Library)
    if not one or value.escaped or asked not in _IN_PARTS:
        return True
    return isinstance(value, Instance) and value.kind == "loader" and asked != "[]"
