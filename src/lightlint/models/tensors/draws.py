"""Small tensors that are drawn at random, and what is moved in a picture because of them."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.choices import holds_draw
from lightlint.engine.events import Transformed
from lightlint.engine.machine import Machine
from lightlint.values.core import Library, Value, is_constant
from lightlint.values.training import Tensor

DRAWING = ("rand", "randn", "randint")
MOVING = ("flip", "fliplr", "flipud", "rot90", "roll")
"""What moves things in a tensor or array as it is told, at random where that was drawn."""


def note_drawn(made: Tensor, name: str, sizes: list[Value] | None) -> None:
    """Give a number that `torch.rand` and the like draw a name of its own; `sizes`: all that the call says, if that is known."""
    if name in DRAWING and sizes is not None and all(is_constant(each, 1) for each in sizes):
        made.key = ("drawn", made.made)


def compared(made: Tensor, symbol: str, left: Value, right: Value) -> None:
    """What a comparison with a drawn number is known by."""
    if (holds_draw(left.key) or holds_draw(right.key)) and None not in (left.key, right.key):
        made.key = (symbol, left.key, right.key)


def note_moved(machine: Machine, made: Value, name: str, given: Arguments, node: ast.AST) -> None:
    """Write down that something is moved because of a draw, or as far as that says."""
    first, rest = given.positional[:1], [*given.positional[1:], *given.keywords.values()]
    if name not in MOVING or not first:
        return
    keys = [*(each.key for each in rest), *(each.key for each in machine.conditions)]
    if any(map(holds_draw, keys)):
        transform = machine.instance(Library(f"torch.{name}"), "transform", node)
        transform.arguments = {f"#{number}": each for number, each in enumerate(rest)}
        machine.emit(Transformed(machine.where(node), transform, first, made))
