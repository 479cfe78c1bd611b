"""What `exp`, `sum` and `log` make of each other: some of it loses the digits of small values, or overflows."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import DigitsLost
from lightlint.engine.machine import Machine
from lightlint.values.core import Unknown, Value, is_constant
from lightlint.values.training import Tensor

SHIFTED = frozenset({"shifted"})  # something was taken off it, or off what it was computed from
NAMES = frozenset({"exp", "sum", "log"})


def note(machine: Machine, made: Value, name: str, given: Arguments, node: ast.AST, *, sure: bool) -> None:
    """Note what one of these gives; `sure`: it is torch's."""
    source = given.get(0, "input")
    if source is None:
        return
    made.terms = (name, (source,))
    within, parts = _terms(source)
    if name != "log" or not sure:
        return
    if within == "+" and any(is_constant(each, 1, 1.0) for each in parts):
        machine.emit(DigitsLost(machine.where(node), "log1p"))
    raised, values = _terms(parts[0]) if within == "sum" else ("", ())
    if raised == "exp" and _is_as_it_came(values[0]):
        machine.emit(DigitsLost(machine.where(node), "logsumexp"))


def lessen(machine: Machine, made: Tensor, left: Value, right: Value, node: ast.AST) -> None:
    """Note a difference."""
    if not is_constant(left, 0):
        made.traits |= SHIFTED
    if left.terms is not None and left.terms[0] == "exp" and is_constant(right, 1, 1.0):
        machine.emit(DigitsLost(machine.where(node), "expm1"))


def _terms(value: Value) -> tuple[str, tuple[Value, ...]]:
    """What gave a value, and of what: for one of which nothing is known the method of what it came from."""
    if value.terms is None and isinstance(value, Unknown) and value.given_by is not None:
        return value.hint, (value.given_by,)
    return value.terms or ("", ())


def _is_as_it_came(value: Value) -> bool:
    """Whether nothing was taken off a value, as far back as it is known where it comes from."""
    if isinstance(value, Tensor):
        return not value.traits & SHIFTED and not value.escaped
    return isinstance(value, Unknown) and isinstance(value.key, tuple) and value.key[:1] == ("parameter",)
