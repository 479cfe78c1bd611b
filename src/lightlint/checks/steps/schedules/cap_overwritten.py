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
            key, before = event.value.key, event.before.key if event.before is not None else None
            if not isinstance(key, tuple) or not isinstance(before, tuple) or len(key) != len(_PARTS):
                continue
            word, *parts = key
            if word in _WORDS and before[:1] == (word,) and before in parts:
                others = [each for each in parts if each != before]
                if len(others) == 1 and _goes(others[0], up=word == "min"):
                    yield Fault.at(event, _MESSAGE.format(event.name, *_WORDS[word]))


_PARTS = ("function", "first", "second")


def _goes(key: Hashable, *, up: bool) -> bool:
    """Whether a number that a counter gives goes one way from step to step."""
    values = [_worked_out(key, turn) for turn in _TURNS]
    known = [each for each in values if each is not None]
    if len(known) < len(values):
        return False
    return all(later > earlier if up else later < earlier for earlier, later in itertools.pairwise(known))


def _worked_out(key: Hashable, turn: int) -> float | None:
    """What a number is by its key, where a counter has come to a turn; None where anything else is unknown."""
    match key:
        case ("constant", "int" | "float", int() | float() as number):
            return float(number)
        case ("number", int() | float() as number):
            return float(number)
        case ("counter" | "index", *_):
            return float(turn)
        case ("product", tuple() as factors):
            found = [(_worked_out(part, turn), power) for part, power in factors]
            return None if any(part is None for part, _ in found) else _product(found)
        case (("+" | "-" | "**") as symbol, left, right):
            one, other = _worked_out(left, turn), _worked_out(right, turn)
            return None if one is None or other is None else _combined(symbol, one, other)
    return None


def _product(factors: list[tuple[float | None, int]]) -> float | None:
    try:
        return math.prod(part**power for part, power in factors if part is not None)
    except (ArithmeticError, ValueError):
        return None


def _combined(symbol: str, one: float, other: float) -> float | None:
    try:
        found = one + other if symbol == "+" else one - other if symbol == "-" else one**other
    except (ArithmeticError, ValueError):
        return None
    return found if isinstance(found, float) else None
