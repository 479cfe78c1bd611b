from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_MESSAGE = "`{0}` is set to the {1} of itself and of a number that {2} with each step: it stays at the first of these"
_WORDS = {"min": ("smaller", "grows"), "max": ("larger", "falls")}
_TURNS = (1, 2, 10, 100, 10_000)


class CapOverwritten(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Attributes that take the place of their own bound: the smaller of themselves and of a number that grows."""
        for event in (event for path in entry.paths for event in path.of(AttributeSet)):
            before = event.before.key if event.before is not None else None
            match event.value.key:
                case (("min" | "max") as word, *parts) if isinstance(before, tuple) and before[:1] == (word,):
                    others = [each for each in parts if each != before]
                    if before in parts and len(others) == 1 and _goes(others[0], up=word == "min"):
                        yield Fault.at(event, _MESSAGE.format(event.name, *_WORDS[word]))


def _goes(key: Hashable, *, up: bool) -> bool:
    """Whether a number that a counter gives goes one way from step to step."""
    try:
        values = [_worked_out(key, turn) for turn in _TURNS]
    except (ArithmeticError, ValueError):
        return False
    return all(later > earlier if up else later < earlier for earlier, later in itertools.pairwise(values))


def _worked_out(key: Hashable, turn: int) -> float:
    """What a number is by its key, where a counter has come to a turn; a ValueError where anything else is unknown."""
    match key:
        case ("constant", "int" | "float", int() | float() as number) | ("number", int() | float() as number):
            return float(number)
        case ("counter" | "index", *_):
            return float(turn)
        case ("product", tuple() as factors):
            return math.prod(math.pow(_worked_out(part, turn), power) for part, power in factors)
        case ("+", left, right):
            return _worked_out(left, turn) + _worked_out(right, turn)
        case ("-", left, right):
            return _worked_out(left, turn) - _worked_out(right, turn)
        case ("**", left, right):
            return math.pow(_worked_out(left, turn), _worked_out(right, turn))
    raise ValueError(key)
