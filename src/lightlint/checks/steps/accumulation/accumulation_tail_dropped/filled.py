"""Whether the numbers of a program say that its last batch fills a window."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import add, eq, floordiv, ge, gt, le, lt, mod, mul, ne, sub
from typing import TYPE_CHECKING, Any

from lightlint.values.core import Constant, Sequence, Value, is_constant, number_of
from lightlint.values.training import Instance, Loader, Tensor

if TYPE_CHECKING:
    from lightlint.engine.events import Stepped

_WORKED_OUT: dict[object, Callable[[Any, Any], Any]] = {
    **{"+": add, "-": sub, "*": mul, "%": mod, "//": floordiv},
    **{"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge},
}
_MOST_MOVES = 4


def is_filled(event: Stepped) -> bool:
    """Whether a step that waits for so many batches of a loop surely comes with the last one, too."""
    loop = next((turn.loop for turn in reversed(event.where.turns) if turn.loop.kind == "batch"), None)
    count = _batches(loop.over) if loop is not None else None
    tests = [each for each in event.where.conditions if loop is not None and _counts(each.key, loop.site[1])]
    if loop is None or not count or not tests:
        return False
    return all(_value(each.key, loop.site[1], count - 1) is each.outcome for each in tests)


def rows(data: Value | None) -> int | None:
    """How many rows the program makes a TensorDataset with."""
    tensors = data.arguments.get("tensors") if isinstance(data, Instance) else None
    held = tensors.items if isinstance(tensors, Sequence) and "indices" not in getattr(data, "arguments", {}) else []
    return next((size for each in held if (size := _first_size(each)) is not None), None)


def _first_size(value: Value | None) -> int | None:
    for _ in range(_MOST_MOVES):
        if not isinstance(value, Tensor) or value.sizes:
            break
        value = value.moved_from
    return value.sizes[0] if isinstance(value, Tensor) and value.sizes else None


def _batches(loader: Value | None) -> int | None:
    """How many batches a loader gives in which all is numbers."""
    if not isinstance(loader, Loader) or loader.sampler is not None or loader.open_arguments:
        return None
    size, drops = (loader.arguments.get(name, other) for name, other in _DEFAULTS)
    count, number = rows(loader.data), number_of(size)
    known = count is not None and isinstance(number, int) and number > 0 and isinstance(drops, Constant)
    if not known or count is None or not isinstance(number, int) or "batch_sampler" in loader.arguments:
        return None
    return count // number if is_constant(drops, True) else -(-count // number)


_DEFAULTS = (("batch_size", Constant(1)), ("drop_last", Constant(False)))


def _counts(key: Hashable, line: int) -> bool:
    """Whether a test asks for the number of a turn of the loop in a line."""
    if not isinstance(key, tuple):
        return False
    return key[:2] == ("index", line) or any(_counts(each, line) for each in key)


def _value(key: Hashable, line: int, index: int) -> Any:
    """What a key comes to in the turn of a loop with this number, None where that is not known."""
    match key:
        case ("index", _, *_) if key[1] == line:
            return index
        case ("constant", "int", number):
            return number
        case ("not", inner):
            found = _value(inner, line, index)
            return not found if isinstance(found, bool) else None
        case (symbol, left, right) if symbol in _WORKED_OUT:
            one, two = _value(left, line, index), _value(right, line, index)
            divides = symbol not in ("%", "//") or bool(two)
            return _WORKED_OUT[symbol](one, two) if one is not None and two is not None and divides else None
    return None
