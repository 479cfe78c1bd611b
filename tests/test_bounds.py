"""What comparisons with numbers tell of an unknown never contradicts a number that meets them all."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lightlint.engine.bounds import Bounds, compared_with_number

PYTHON = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b}
comparisons = st.lists(st.tuples(st.sampled_from(sorted(PYTHON)), st.integers(-4, 4), st.booleans()), max_size=6)


def key_of(unknown: Any, symbol: str, number: float, turned: bool) -> tuple[Any, ...]:
    constant = ("constant", type(number).__name__, number)
    return (symbol, constant, unknown) if turned else (symbol, unknown, constant)


def comes_out(value: float, symbol: str, number: float, turned: bool) -> bool:
    return PYTHON[symbol](number, value) if turned else PYTHON[symbol](value, number)


@given(st.integers(-5, 5), comparisons, st.sampled_from([("of", "args", "n_gpu"), ("of", "args", "lr")]))
def test_what_is_decided_is_so(value: int, asked: list[tuple[str, int, bool]], unknown: tuple[str, ...]) -> None:
    bounds = Bounds()
    for symbol, number, turned in asked:
        comparison = compared_with_number(key_of(unknown, symbol, number, turned))
        assert comparison is not None
        assert comparison.unknown == unknown
        is_so, decided = comes_out(value, symbol, number, turned), bounds.decides(comparison)
        assert decided in (None, is_so)
        if decided is None:
            bounds = bounds.narrowed(comparison, is_so)
        assert is_so is False or bounds.decides(comparison)


@given(st.floats(-5, 5, allow_nan=False), comparisons)
def test_of_other_numbers_nothing_whole_is_taken_for_granted(value: float, asked: list[tuple[str, int, bool]]) -> None:
    bounds = Bounds()
    for symbol, number, turned in asked:
        comparison = compared_with_number(key_of(("of", "args", "threshold"), symbol, number, turned))
        assert comparison is not None
        is_so, decided = comes_out(value, symbol, number, turned), bounds.decides(comparison)
        assert decided in (None, is_so)
        if decided is None:
            bounds = bounds.narrowed(comparison, is_so)


def test_the_length_of_a_list_in_sight_may_grow() -> None:
    assert compared_with_number(key_of(("length", 140_001), "<", 2, False)) is None
    assert compared_with_number(key_of(("length", ("of", "args", "devices")), "<", 2, False)) is not None
    assert compared_with_number(("in", ("of", "args", "n"), ("constant", "int", 1))) is None
