"""Random orders: what gives one, and which rows a part of one picks."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import RowsPicked
from lightlint.engine.machine import Machine
from lightlint.models.registry import function
from lightlint.values.core import (
    ARRAYS,
    LASTING,
    NONE,
    SHUFFLED,
    Constant,
    Sequence,
    Unknown,
    Value,
    places_of,
    traits_of,
)


def permuted(machine: Machine, given: Arguments) -> Value:
    """The numbers up to another one, or some rows, in a random order."""
    machine.clock += 1
    first = given.get(0, "x")
    found = Unknown(("order", machine.clock), SHUFFLED | (traits_of(first) & (ARRAYS | LASTING)))
    found.lent = [first] if first is not None and not isinstance(first, Constant) else []
    return found


def shuffled(given: Arguments) -> Value:
    """Put something into a random order where it lies."""
    first = given.get(0, "x")
    if first is not None:
        first.traits = first.traits | SHUFFLED
    return NONE


@function("numpy.random.permutation")
def _permutation(machine: Machine, given: Arguments, _: ast.AST) -> Value:
    return permuted(machine, given)


@function("numpy.random.shuffle", "random.shuffle")
def _shuffle(_: Machine, given: Arguments, __: ast.AST) -> Value:
    return shuffled(given)


@function("sklearn.utils.shuffle")
def _all_shuffled(machine: Machine, given: Arguments, _: ast.AST) -> Value:
    found = [permuted(machine, Arguments([each])) for each in given.positional]
    return found[0] if len(found) == 1 else Sequence(found, "list", more=not given.exact)


def note_picked(machine: Machine, value: Value, index: Value, part: Value, node: ast.AST) -> None:
    """Note which part of a random order was taken, and write down that rows are picked by one."""
    first = next(iter(places_of(index)), index)
    if first.order_cut is not None:
        machine.emit(RowsPicked(machine.where(node), value, *first.order_cut))
    elif value.traits & SHUFFLED and isinstance(first, Sequence) and first.kind == "slice" and part is not value:
        part.order_cut = (value, first.items[0], first.items[1])
        machine.emit(RowsPicked(machine.where(node), value, *part.order_cut))
    elif first.traits & SHUFFLED and isinstance(part, Unknown):
        part.lent = [value]
