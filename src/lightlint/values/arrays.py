"""How many dimensions the arrays of numpy and the tables and columns of pandas have that a program makes and cuts.

Sources: the documentation of `numpy.ndarray` (indexing, methods) and of `pandas.DataFrame` and `pandas.Series`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from lightlint.values.core import Axes, Constant, Mapping, Sequence, Unknown, Value, number_of, text_of

TABLE, COLUMN, SCALAR = Axes(2, "table"), Axes(1, "column"), Axes(0)
_GROUPS, _ROWS, _PAIR_OF_TABLE, _PAIR_OF_ROW = Axes(2, "groups"), Axes(2, "rows"), Axes(2, "pair"), Axes(1, "pair")
_PLACES = frozenset(["iloc", "loc", "at", "iat"])
_NO_COLUMNS = frozenset(
    ["shape", "size", "ndim", "empty", "dtypes", "dtype", "attrs", "axes", "style", "plot", "flags", "name"]
)
_SAME_OF_TABLE = frozenset(
    [
        "abs",
        "assign",
        "astype",
        "clip",
        "copy",
        "drop",
        "drop_duplicates",
        "dropna",
        "ffill",
        "bfill",
        "fillna",
        "filter",
        "head",
        "infer_objects",
        "interpolate",
        "isin",
        "isna",
        "isnull",
        "join",
        "merge",
        "nlargest",
        "notna",
        "nsmallest",
        "query",
        "rename",
        "replace",
        "reset_index",
        "round",
        "sample",
        "set_index",
        "shift",
        "sort_index",
        "sort_values",
        "tail",
    ]
)
_SAME_OF_COLUMN = frozenset(
    [
        "abs",
        "astype",
        "between",
        "clip",
        "copy",
        "cumsum",
        "diff",
        "drop",
        "dropna",
        "eq",
        "ffill",
        "bfill",
        "fillna",
        "ge",
        "gt",
        "head",
        "infer_objects",
        "interpolate",
        "isin",
        "isna",
        "isnull",
        "le",
        "lt",
        "map",
        "ne",
        "notna",
        "notnull",
        "replace",
        "round",
        "sample",
        "shift",
        "sort_index",
        "sort_values",
        "tail",
        "tolist",
        "to_list",
        "to_numpy",
        "unique",
        "value_counts",
    ]
)
_SUMMED = frozenset(
    [
        "all",
        "any",
        "argmax",
        "argmin",
        "count",
        "idxmax",
        "idxmin",
        "max",
        "mean",
        "median",
        "min",
        "nunique",
        "prod",
        "std",
        "sum",
        "var",
        "item",
    ]
)
_SAME_OF_ARRAY = frozenset(
    ["astype", "clip", "copy", "round", "tolist", "transpose", "swapaxes", "conj", "view", "byteswap"]
)
_READERS = frozenset(["read_csv", "read_table", "read_excel", "read_parquet", "read_feather", "DataFrame"])
_IN_PIECES = frozenset(["header", "chunksize", "iterator", "squeeze", "sheet_name", "columns"])
_OF_SIZES = frozenset(["numpy.zeros", "numpy.ones", "numpy.empty", "numpy.full", "numpy.random.random"])
_SAME = frozenset(
    [
        "array",
        "asarray",
        "ascontiguousarray",
        "float32",
        "float64",
        "int64",
        "int32",
        "log",
        "log1p",
        "log2",
        "log10",
        "exp",
        "expm1",
        "sqrt",
        "abs",
        "absolute",
        "square",
        "sin",
        "cos",
        "tanh",
        "sign",
        "clip",
        "round",
        "nan_to_num",
        "copy",
        "flip",
        "roll",
        "cumsum",
        "argsort",
        "sort",
        "zeros_like",
        "ones_like",
        "full_like",
    ]
)
_FLAT = frozenset(["arange", "linspace", "logspace", "ravel", "unique", "bincount", "hanning"])
_ALONG = {"concatenate": 0, "hstack": 0, "append": 0, "stack": 1}


def dimensions(value: Value | None) -> tuple[int, bool]:
    """How many dimensions an array has that is made of a value which is no tensor, and whether it surely has no more."""
    if isinstance(value, Constant):
        return 0, True
    if isinstance(value, Sequence) and value.kind in ("list", "tuple"):
        inner, sure = dimensions(value.items[0]) if value.items else (0, False)
        return inner + 1, sure
    if not isinstance(value, Unknown):
        return 0, False
    if value.axes is not None:
        return (value.axes.count, True) if value.axes.kind in ("array", "table", "column") else (0, False)
    if value.terms is not None or value.factors is not None:
        return _of_terms(value)
    return 0, value.plain


def _of_terms(value: Unknown) -> tuple[int, bool]:
    """Of what a sum, a product and their like are made of: the one of most dimensions gives the result its shape."""
    found = [dimensions(each) for each in value.terms[1]] if value.terms is not None else [(0, False)]
    return max(count for count, _ in found), all(sure for _, sure in found)


def count_of(value: Value | None) -> int | None:
    """How many dimensions a value surely has, None where that is unknown."""
    count, sure = dimensions(value)
    return count if sure else None


def of_item(value: Unknown, index: Value) -> Axes | None:
    """What `value[index]` is."""
    axes = value.axes
    if axes is None:
        return None
    if axes.kind == "table":
        return _of_table(index)
    if axes.kind == "pair":
        return _second(axes) if number_of(index) == 1 else None
    if axes.kind not in ("array", "column", "places"):
        return None
    placed = index.items if isinstance(index, Sequence) and index.kind == "tuple" else [index]
    kept = [_kept(each) for each in placed]
    if None in kept or len(kept) > axes.count:
        return None
    count = axes.count - len(kept) + sum(each for each in kept if each is not None)
    kind = "column" if axes.kind in ("column", "places") and count else "array"
    return TABLE if axes.kind == "places" and count == TABLE.count else Axes(count, kind)


def _of_table(index: Value) -> Axes | None:
    """A column by its name, or rows or columns by a list, a slice or a test."""
    if text_of(index) is not None:
        return COLUMN
    listed = isinstance(index, Sequence) and index.kind in ("list", "slice")
    return TABLE if listed or count_of(index) == 1 else None


def _kept(index: Value) -> int | None:
    """How many dimensions are left of that which an index is for."""
    if isinstance(index, Sequence):
        return 1 if index.kind == "slice" else count_of(index)
    if isinstance(index, Constant):
        return 0 if isinstance(index.value, (int, str)) else None
    return 0 if isinstance(index, Unknown) and "index" in index.traits else count_of(index)


def of_element(value: Value) -> Axes | None:
    """What a loop over a value takes out of it."""
    axes = value.axes if isinstance(value, Unknown) else None
    if axes is None or axes.kind in ("table", "places", "methods", "pair"):
        return None
    if axes.kind in ("groups", "rows"):
        return _PAIR_OF_TABLE if axes.kind == "groups" else _PAIR_OF_ROW
    return Axes(axes.count - 1) if axes.count else None


def of_part(value: Value, index: int | str) -> Axes | None:
    """What unpacking a value gives at a place."""
    axes = value.axes if isinstance(value, Unknown) else None
    return _second(axes) if axes is not None and axes.kind == "pair" and index == 1 else None


def _second(pair: Axes) -> Axes:
    return TABLE if pair.count == TABLE.count else COLUMN


def of_attribute(value: Unknown, name: str) -> Axes | None:
    """What `value.name` is, if it is no method."""
    axes = value.axes
    if axes is None or name in _NO_COLUMNS:
        return None
    if axes.kind == "array":
        return axes if name in ("T", "real", "imag") else None
    if axes.kind not in ("table", "column"):
        return None
    if name == "values":
        return Axes(axes.count)
    if name in _PLACES:
        return replace(axes, kind="places")
    if name in ("str", "dt", "cat"):
        return replace(axes, kind="methods")
    return COLUMN if axes.kind == "table" else None


def of_call(holder: Value | None, name: str, positional: list[Value], keywords: dict[str, Value]) -> Axes | None:
    """What a method gives."""
    axes = holder.axes if isinstance(holder, Unknown) else None
    return _METHODS[axes.kind](axes, name, positional, keywords) if axes is not None and axes.kind in _METHODS else None


_Method = Callable[[Axes, str, list[Value], dict[str, Value]], Axes | None]


def _method_of_table(_: Axes, name: str, positional: list[Value], __: dict[str, Value]) -> Axes | None:
    if name in _SAME_OF_TABLE:
        return TABLE
    if name in ("pop", "get"):
        return COLUMN if positional and text_of(positional[0]) is not None else None
    return {"to_numpy": Axes(2), "groupby": _GROUPS, "iterrows": _ROWS}.get(name)


def _method_of_column(_: Axes, name: str, __: list[Value], keywords: dict[str, Value]) -> Axes | None:
    if name in _SUMMED:
        return SCALAR
    drops = name == "reset_index" and isinstance(keywords.get("drop"), Constant)
    return COLUMN if name in _SAME_OF_COLUMN or drops else None


def _method_of_array(axes: Axes, name: str, positional: list[Value], keywords: dict[str, Value]) -> Axes | None:
    if name == "reshape":
        return _of_sizes(positional)
    if name in ("flatten", "ravel"):
        return Axes(1)
    if name in _SUMMED:
        return SCALAR if not positional and not keywords.keys() & {"axis", "keepdims"} else None
    return axes if name in _SAME_OF_ARRAY else None


def _method_of_entries(_: Axes, name: str, __: list[Value], ___: dict[str, Value]) -> Axes | None:
    return COLUMN if name not in ("split", "extract", "partition", "get_dummies") else None


_METHODS: dict[str, _Method] = {
    "table": _method_of_table,
    "column": _method_of_column,
    "array": _method_of_array,
    "methods": _method_of_entries,
}


def of_library(path: str, positional: list[Value], keywords: dict[str, Value]) -> Axes | None:
    """What a function or class of numpy or pandas gives."""
    root, _, _ = path.partition(".")
    last = path.rpartition(".")[2]
    first = positional[0] if positional else None
    if root == "pandas":
        return _of_pandas(last, first, keywords)
    if root != "numpy":
        return None
    if path in _OF_SIZES:
        return _of_sizes([first] if first is not None else [])
    if path in ("numpy.random.rand", "numpy.random.randn"):
        return Axes(len(positional)) if all(count_of(each) == 0 for each in positional) else None
    if last in _FLAT:
        return Axes(1)
    inner = first.items[0] if isinstance(first, Sequence) and first.items and last in _ALONG else None
    count = count_of(inner if last in _ALONG else first) if last in _ALONG or last in _SAME else None
    return (
        Axes(count + _ALONG.get(last, 0)) if count is not None and (last == "stack" or count or last in _SAME) else None
    )


def _of_pandas(last: str, first: Value | None, keywords: dict[str, Value]) -> Axes | None:
    if last in _READERS:
        whole = not any(_is_open(name, each) for name, each in keywords.items())
        return TABLE if whole and not (last == "DataFrame" and isinstance(first, Mapping) and not first.items) else None
    if last == "Series":
        return COLUMN
    if last in ("to_numeric", "to_datetime"):
        return COLUMN if count_of(first) == 1 else None
    listed = first.items if isinstance(first, Sequence) else [first]
    tables = all(isinstance(each, Unknown) and each.axes == TABLE for each in listed)
    return TABLE if last in ("concat", "merge", "get_dummies") and listed and tables else None


def _is_open(name: str, value: Value) -> bool:
    """Whether an argument makes of a table several, or of its columns such that a name stands for several."""
    if name in ("header", "columns"):
        return not (isinstance(value, (Constant, Sequence)) and not _is_nested(value, name))
    return name in _IN_PIECES


def _is_nested(value: Value, name: str) -> bool:
    """Whether columns have names of several levels."""
    items = value.items if isinstance(value, Sequence) else []
    return bool(items) if name == "header" else any(isinstance(each, Sequence) for each in items)


def _of_sizes(sizes: Iterable[Value]) -> Axes | None:
    """An array of given sizes, one after the other or in one tuple."""
    given = [*sizes]
    first = given[0] if given else None
    if isinstance(first, Sequence) and first.kind in ("tuple", "list"):
        return Axes(len(first.items)) if not first.more else None
    return Axes(len(given)) if given and all(count_of(each) == 0 for each in given) else None
