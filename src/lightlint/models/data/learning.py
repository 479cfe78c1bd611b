"""scikit-learn: what is fitted, and how data is split."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import RowsCut, SplitDrawn
from lightlint.engine.machine import Machine
from lightlint.models.registry import function, methods
from lightlint.values.core import FITTED, INTEGERS, LASTING, Sequence, Traits, Unknown, Value, is_constant, traits_of
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
    """Write down that rows, or windows of them, are taken from what a transformer has learnt from."""
    if value.traits & FITTED:
        first = index.items[0] if isinstance(index, Sequence) and index.kind == "tuple" and index.items else index
        if isinstance(first, Sequence) and first.kind == "slice" and len(first.items) > 1:
            machine.emit(RowsCut(machine.where(node), value, first.items[0], first.items[1]))


def learns(estimator: Instance) -> bool:
    """Whether an estimator learns numbers from all rows, and gives each row back changed by them or makes rows of them."""
    path = next(iter(estimator.libraries()), "")
    return path.startswith((*_LEARNING, *_ADDING)) and estimator.name not in _HARMLESS


@function("sklearn.model_selection.train_test_split")
def _split(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    kept = traits_of(*given.values()) & LASTING
    if not given.exact or not given.positional:
        return Unknown(None, kept, hint="train_test_split")
    parts = Sequence(
        [Unknown(None, traits_of(each) & (LASTING | INTEGERS)) for each in given.positional for _ in range(2)]
    )
    seed = given.keywords.get("random_state")
    seeded = (seed is not None and not is_constant(seed, None)) or "shuffle" in given.keywords
    machine.emit(SplitDrawn(machine.where(node), "train_test_split", given.positional, parts, seeded))
    return parts


def kept_of(values: list[Value]) -> Traits:
    """Whether any of some values, or what they list, is what a transformer has made."""
    listed = (one for each in values if isinstance(each, Sequence) for one in each.items[:1])
    return traits_of(*values, *listed) & FITTED
