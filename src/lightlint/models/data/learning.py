"""scikit-learn: what is fitted, and how data is split."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import RowsCut, SplitDrawn, WindowCut
from lightlint.engine.machine import Machine
from lightlint.models.registry import function, methods
from lightlint.values import arrays
from lightlint.values.core import (
    FITTED,
    INTEGERS,
    LASTING,
    PART,
    Axes,
    Sequence,
    Traits,
    Unknown,
    Value,
    is_constant,
    places_of,
    traits_of,
)
from lightlint.values.training import Instance

_LEARNING = ("sklearn.preprocessing.", "sklearn.decomposition.", "sklearn.impute.", "sklearn.feature_selection.")
_HARMLESS = {"LabelEncoder", "LabelBinarizer", "OneHotEncoder", "OrdinalEncoder", "MultiLabelBinarizer", "Normalizer"}
_ADDING = ("imblearn.over_sampling.", "imblearn.combine.")


@methods("estimator")
def estimator_method(_: Machine, estimator: Value, name: str, given: Arguments, __: ast.AST) -> Value:
    """A method of an estimator: what it makes of rows has learnt from all that it was fitted on."""
    assert isinstance(estimator, Instance)
    if name in ("fit", "partial_fit", "set_params"):
        if name == "fit" and given.positional:
            estimator.attributes["#fitted"] = given.positional[0]
        return estimator
    kept = traits_of(*given.values()) & LASTING
    if name == "fit_resample":
        return Sequence([Unknown(None, kept | FITTED if learns(estimator) else kept), Unknown()], "tuple")
    if estimator.name == "MultiLabelBinarizer" and name in ("fit_transform", "transform"):
        kept |= INTEGERS
    rows, seen = given.get(0, "X"), estimator.attributes.get("#fitted")
    all_seen = name == "fit_transform" or (name == "transform" and rows is not None and rows is seen)
    return Unknown(None, kept | FITTED if all_seen and learns(estimator) else kept)


def note_cut(machine: Machine, value: Value, index: Value, node: ast.AST) -> None:
    """Write down that rows are taken from what a transformer has learnt from, and that windows are cut out of a series."""
    first = next(iter(places_of(index)), index)
    if not isinstance(first, Sequence) or first.kind != "slice" or len(first.items) < _BOUNDS:
        return
    lower, upper, *step = first.items
    if value.traits & FITTED:
        machine.emit(RowsCut(machine.where(node), value, lower, upper))
    apart = any(_are_apart(one, other) for one, other in ((lower, upper), (upper, lower)))
    if apart and (not step or is_constant(step[0], None, 1)):
        machine.emit(WindowCut(machine.where(node)))


_BOUNDS, _DEPTH = 2, 3


def _are_apart(counter: Value, other: Value, depth: int = 0) -> bool:
    """Whether one bound is a number that counts up by one, and the other is more than one from it."""
    if not isinstance(counter, Unknown) or not counter.by_one or other.terms is None or depth > _DEPTH:
        return False
    symbol, terms = other.terms
    left, right = terms if len(terms) == _BOUNDS else (None, None)
    if symbol not in ("+", "-") or left is None or right is None:
        return False
    is_left, is_right = (each.key is not None and each.key == counter.key for each in (left, right))
    width = right if is_left else left if is_right and symbol == "+" else None
    if width is not None:
        return not is_constant(width, 0, 1)
    return _are_apart(counter, left, depth + 1) or (symbol == "+" and _are_apart(counter, right, depth + 1))


def learns(estimator: Instance) -> bool:
    """Whether an estimator learns numbers from all rows, and gives each row back changed by them or makes rows of them."""
    path = next(iter(estimator.libraries()), "")
    return path.startswith((*_LEARNING, *_ADDING)) and estimator.name not in _HARMLESS


@function("sklearn.model_selection.train_test_split")
def _split(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    kept = traits_of(*given.values()) & LASTING
    if not given.exact or not given.positional:
        return Unknown(None, kept, hint="train_test_split")
    parts = Sequence([_part_of(each) for each in given.positional for _ in range(2)])
    seed = given.keywords.get("random_state")
    seeded = (seed is not None and not is_constant(seed, None)) or "shuffle" in given.keywords
    machine.emit(SplitDrawn(machine.where(node), "train_test_split", given.positional, parts, seeded))
    return parts


def _part_of(rows: Value) -> Unknown:
    """Some of the rows: they have the dimensions that all have."""
    part = Unknown(None, traits_of(rows) & (LASTING | INTEGERS) | PART)
    count = arrays.count_of(rows)
    part.axes = rows.axes if isinstance(rows, Unknown) else Axes(count) if count else None
    return part


def kept_of(values: list[Value]) -> Traits:
    """Whether any of some values, or what they list, is what a transformer has made."""
    listed = (one for each in values if isinstance(each, Sequence) for one in each.items[:1])
    return traits_of(*values, *listed) & FITTED
