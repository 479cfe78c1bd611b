"""What comparing ranks with a constant gives on the ranks of a run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import libcst as cst

_MIRRORED: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.LessThan: cst.GreaterThan,
    cst.GreaterThan: cst.LessThan,
    cst.LessThanEqual: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.LessThanEqual,
}
_COMPARISONS: dict[type[cst.BaseCompOp], Callable[[int, int], bool]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
}
RANKS = range(8)


def mirrored(comparison: cst.BaseCompOp) -> cst.BaseCompOp:
    """The comparison that says the same with its sides changed over."""
    other = _MIRRORED.get(type(comparison))
    return other() if other is not None else comparison


def outcomes(comparison: cst.BaseCompOp, value: object, ranks: Sequence[int] = RANKS) -> set[bool]:
    """What comparing ranks, on the left, with a constant gives; nothing for what no number compares with."""
    if isinstance(value, list) and isinstance(comparison, (cst.In, cst.NotIn)):
        return {(rank in value) is isinstance(comparison, cst.In) for rank in ranks}
    compare = _COMPARISONS.get(type(comparison))
    if compare is None or not isinstance(value, int) or isinstance(value, bool):
        return set()
    return {compare(rank, value) for rank in ranks}
