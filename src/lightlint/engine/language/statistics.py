"""Numbers that all rows of something have in common, such as their mean, and rows that are centred and scaled by these."""

from __future__ import annotations

from collections.abc import Iterator

from lightlint.values.core import Constant, Unknown, Value

_CENTRES = frozenset(["mean", "nanmean", "median", "nanmedian", "min", "nanmin", "amin"])
_WIDTHS = frozenset(["std", "nanstd", "var", "max", "nanmax", "amax", "ptp", "quantile", "percentile"])
_DEPTH = 4


def scaled_rows(left: Value, right: Value) -> Value | None:
    """The rows of which `(rows - mean) / deviation` is taken, by numbers of their own: of each column, or of everything."""
    symbol, parts = left.terms or ("", ())
    if symbol != "-" or len(parts) != 2:
        return None
    rows, centre = parts
    centred = any(_is_same(rows, each) for each in _measured(centre, _CENTRES))
    return rows if centred and any(_is_same(rows, each) for each in _measured(right, _WIDTHS)) else None


def _measured(value: Value, names: frozenset[str], depth: int = 0) -> Iterator[Value]:
    """Of what rows a number is such a measure, perhaps with a bit more, or that of a difference."""
    if isinstance(value, Unknown) and value.hint in names:
        given = [*value.lent] if value.given_by is None else [value.given_by, *value.lent]
        if given and (len(given) == 1 or _is_zero(given[1])):
            yield given[0]
    symbol, parts = value.terms or ("", ())
    for each in parts if symbol in ("+", "-", "*") and depth < _DEPTH else ():
        yield from _measured(each, names, depth + 1)


def _is_zero(value: Value) -> bool:
    return isinstance(value, Constant) and type(value.value) is int and value.value == 0


def _is_same(one: Value, other: Value) -> bool:
    return one is other or (one.key is not None and one.key == other.key)
