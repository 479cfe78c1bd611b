"""What is known of the dimensions of arrays, tables and columns."""

from __future__ import annotations

import pytest

from lightlint.values import arrays
from lightlint.values.core import Axes, Constant, Sequence, Unknown, Value


def _a(count: int, kind: str = "array") -> Unknown:
    value = Unknown()
    value.axes = Axes(count, kind)
    return value


SLICE = Sequence([Constant(None), Constant(None)], "slice")


@pytest.mark.parametrize(
    ("value", "index", "count"),
    [
        (_a(2, "table"), Constant("depth"), 1),
        (_a(2, "table"), Sequence([Constant("depth")], "list"), 2),
        (_a(2, "table"), Unknown(), None),
        (_a(2, "table"), SLICE, 2),
        (_a(2, "table"), _a(1, "column"), 2),
        (_a(1, "column"), Constant(3), 0),
        (_a(1, "column"), SLICE, 1),
        (_a(2), Sequence([SLICE, Constant(-1)], "tuple"), 1),
        (_a(2), Sequence([SLICE, SLICE], "tuple"), 2),
        (_a(2), Sequence([SLICE, Constant(None)], "tuple"), None),
        (_a(3), Constant(0), 2),
        (_a(1), _a(1), 1),
        (_a(1), Unknown(), None),
        (_a(2, "places"), Sequence([SLICE, Constant(-1)], "tuple"), 1),
        (_a(2, "places"), Constant(0), 1),
        (Unknown(), Constant(0), None),
    ],
)
def test_an_index_leaves_so_many_dimensions(value: Unknown, index: Value, count: int | None) -> None:
    found = arrays.of_item(value, index)
    assert (found.count if found is not None else None) == count


@pytest.mark.parametrize(
    ("value", "name", "given", "count"),
    [
        (_a(2, "table"), "to_numpy", [], 2),
        (_a(2, "table"), "dropna", [], 2),
        (_a(2, "table"), "apply", [Unknown()], None),
        (_a(1, "column"), "unique", [], 1),
        (_a(1, "column"), "mean", [], 0),
        (_a(1, "column"), "apply", [Unknown()], None),
        (_a(1), "reshape", [Constant(-1), Constant(1)], 2),
        (_a(1), "reshape", [Unknown()], None),
        (_a(3), "ravel", [], 1),
        (_a(3), "squeeze", [], None),
        (_a(2), "mean", [Constant(0)], None),
        (_a(2), "mean", [], 0),
    ],
)
def test_a_method_gives_so_many_dimensions(value: Unknown, name: str, given: list[Value], count: int | None) -> None:
    found = arrays.of_call(value, name, given, {})
    assert (found.count if found is not None else None) == count


def test_arithmetic_is_of_known_dimensions_where_all_of_it_is() -> None:
    known, unknown = Unknown(plain=True), Unknown(plain=True)
    known.terms = ("/", (_a(1), Constant(125)))
    unknown.terms = ("/", (Unknown(), Constant(125)))
    assert arrays.dimensions(known) == (1, True)
    assert arrays.dimensions(unknown)[1] is False
