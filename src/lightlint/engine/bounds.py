"""What comparisons with numbers have told of an unknown: behind `n > 1` it is neither 1 nor less."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from dataclasses import dataclass, replace

_SYMBOLS = frozenset({"<", "<=", "=="})
_COUNTS = frozenset(
    {"n", "num", "nb", "count", "gpus", "devices", "workers", "world", "rank", "size", "epoch", "epochs"}
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """An unknown, by its key, compared with a number; `negated` where the number stands first: `1 < n` is not `n <= 1`."""

    unknown: Hashable
    symbol: str
    number: float
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which numbers an unknown lies; an open end is no value of it."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    def decides(self, comparison: Comparison) -> bool | None:
        """How a comparison comes out, None where it may come out both ways."""
        number = comparison.number
        above = self.low > number or (self.low == number and self.low_open)
        below = self.high < number or (self.high == number and self.high_open)
        match comparison.symbol:
            case "<":
                found = True if below else False if self.low >= number else None
            case "<=":
                found = True if self.high <= number else False if above else None
            case _:
                found = False if above or below else True if self.low == self.high else None
        return found if found is None else found != comparison.negated

    def meets(self, other: Bounds) -> bool:
        """Whether a number may lie between these bounds and between others, too."""
        ends = (
            (self.low, other.high, self.low_open or other.high_open),
            (other.low, self.high, other.low_open or self.high_open),
        )
        return all(low < high or (low == high and not is_open) for low, high, is_open in ends)

    def narrowed(self, comparison: Comparison, outcome: bool) -> Bounds:
        """These bounds where a comparison, which they did not decide, has come out so."""
        number, is_so = comparison.number, outcome != comparison.negated
        if comparison.symbol == "==":
            return Bounds(number, number) if is_so else self
        if is_so:
            return replace(self, high=number, high_open=comparison.symbol == "<")
        return replace(self, low=number, low_open=comparison.symbol == "<=")


def compared_with_number(key: Hashable | None) -> Comparison | None:
    """What a test without negations compares with a number; None where it is no such comparison."""
    if not (isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], str) and key[0] in _SYMBOLS):
        return None
    symbol, left, right = key
    if _may_grow(left) or _may_grow(right):
        return None
    if (number := _number(right)) is not None:
        return _on_whole(Comparison(left, symbol, number))
    if (number := _number(left)) is None:
        return None
    turned = {"<": "<=", "<=": "<", "==": "=="}[symbol]
    return _on_whole(Comparison(right, turned, number, negated=symbol != "=="))


def _on_whole(comparison: Comparison) -> Comparison:
    """Of a whole number `n < 2` says what `n <= 1` does."""
    whole = comparison.symbol == "<" and isinstance(comparison.number, int) and _is_whole(comparison.unknown)
    return replace(comparison, symbol="<=", number=comparison.number - 1) if whole else comparison


def _may_grow(key: Hashable) -> bool:
    """Whether a key is that of the length of a list in sight: the list may be longer when it is asked for again."""
    return isinstance(key, tuple) and key[:1] == ("length",) and isinstance(key[1], int)


def _is_whole(key: Hashable) -> bool:
    """Whether a key is that of a number without fraction: how many there are of something."""
    words = re.split(r"[_ ]", str(key[-1] if isinstance(key, tuple) and key else key).lower())
    return (isinstance(key, tuple) and key[:1] == ("length",)) or not _COUNTS.isdisjoint(words)


def _number(key: Hashable) -> float | None:
    match key:
        case ("constant", "int" | "float", int() | float() as number) if number == number:
            return number
    return None
