"""What a loss, or another value, is the sum of."""

from __future__ import annotations

from collections.abc import Container, Iterator

from lightlint.values.core import Value, number_of

_DEPTH = 12
_SIGNS = {"+": (1, 1), "-": (1, -1)}


class NotLinear:
    """A term that is a product of things that are no numbers of the program: its factors; none where nobody looked further."""

    def __init__(self, *factors: Value) -> None:
        self.factors = factors


def summands(value: Value, depth: int = 0) -> Iterator[Value]:
    """What a value is the sum or the difference of, whatever the signs; it itself where it is neither."""
    symbol, parts = value.terms or ("", ())
    if symbol in _SIGNS and depth < _DEPTH:
        for each in parts:
            yield from summands(each, depth + 1)
    else:
        yield value


def linear_terms(
    value: Value, whole: Container[int] = (), sign: int = 1, depth: int = 0
) -> Iterator[tuple[int, Value | NotLinear]]:
    """The terms of a sum with their signs, through means, sums and factors that the program writes down; `whole`: the ids of
    what is one term, whatever it is made of."""
    symbol, parts = (value.terms if id(value) not in whole else None) or ("", ())
    if depth > _DEPTH:
        yield sign, NotLinear()
    elif symbol in _SIGNS and len(parts) == len(_SIGNS[symbol]):
        for each, own in zip(parts, _SIGNS[symbol], strict=True):
            yield from linear_terms(each, whole, sign * own, depth + 1)
    elif symbol in ("mean", "sum"):
        yield from linear_terms(parts[0], whole, sign, depth + 1)
    elif symbol == "*":
        numbers = [number_of(each) for each in parts]
        if all(each is None for each in numbers):
            yield sign, NotLinear(*parts)
        for each, factor in zip(parts, reversed(numbers), strict=True):
            if factor:
                yield from linear_terms(each, whole, sign if factor > 0 else -sign, depth + 1)
    else:
        yield sign, value
