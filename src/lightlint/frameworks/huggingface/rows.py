"""Datasets and Evaluate: tables of rows, what a program makes of each, and metrics of texts."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.events.huggingface import RowsMapped, TextsScored
from lightlint.engine.execution import LeaveLoop, NextTurn, Raised
from lightlint.engine.machine import Machine
from lightlint.frameworks.huggingface.values import is_own
from lightlint.models.names.huggingface import ROWS, TEXT_METRIC, TRANSFORM
from lightlint.models.registry import attributes, item_of, methods, package
from lightlint.values.core import (
    NONE,
    TRUE,
    Function,
    Library,
    Mapping,
    NoneOf,
    Sequence,
    Unknown,
    Value,
    is_constant,
    text_of,
    traits_of,
)
from lightlint.values.training import Instance

_SAME = [
    "filter",
    "shuffle",
    "select",
    "sort",
    "remove_columns",
    "rename_column",
    "rename_columns",
    "select_columns",
    "with_format",
    "with_transform",
    "cast",
    "cast_column",
    "class_encode_column",
    "flatten",
    "shard",
    "take",
    "skip",
    "add_column",
    "to_iterable_dataset",
    "flatten_indices",
    "repeat",
    "train_test_split",
]

_PARTS = ("filter", "select", "shard", "take", "skip")
_FITTED = ("filter", "take", "skip")  # the others are made for parts


@package("datasets")
def datasets(machine: Machine, path: str, given: Arguments, node: ast.AST) -> Value | None:
    """A function or class method of Datasets."""
    last = path.rpartition(".")[2]
    if last in ("load_dataset", "load_from_disk", "concatenate_datasets", "interleave_datasets") or (
        last.startswith("from_") and ("Dataset." in path or "DatasetDict." in path)
    ):
        made = rows(machine, node, given.get(0, "dsets"))
        if not _is_same_everywhere(given):
            made.attributes["#apart"] = Unknown()
        if is_constant(given.keywords.get("streaming"), True):
            made.attributes[STREAMED] = TRUE
        if "split" in given.keywords:
            made.attributes[SPLIT] = given.keywords["split"]
        return made
    return None


SPLIT, STREAMED, CHOSEN = "#split", "#streamed", "#chosen"
"""Under which names a table keeps the split that it is, that it is read as it is gone over, and which of its rows were chosen."""


def _is_same_everywhere(given: Arguments) -> bool:
    """Whether a call asks for the same rows in each process, as far as its arguments tell."""
    open_ones = [each for each in given.values() if isinstance(each, Unknown) and not each.default]
    ranked = any(_names_rank(each.node) for each in given.values() if isinstance(each, Function))
    return given.exact and not open_ones and not ranked and "rank" not in traits_of(*given.values())


def _names_rank(node: ast.AST) -> bool:
    names = (getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node))
    return any("rank" in name or "world" in name for name in names)


def rows(machine: Machine, node: ast.AST, given: Value | None = None) -> Instance:
    """A table of rows, or several of them by the names of their splits."""
    made = machine.instance(Library("datasets.Dataset"), ROWS, node)
    parts = given.items if isinstance(given, Sequence) else []
    mapped = [each.attributes["#row"] for each in parts if isinstance(each, Instance) and "#row" in each.attributes]
    if mapped:
        made.attributes["#row"] = mapped[0]
    return made


@attributes(ROWS)
def attribute(_: Machine, held: Value, name: str, __: ast.AST) -> Value | None:
    """An attribute of a table; None for a method."""
    if name in ("column_names", "features", "num_rows", "shape", "info", "num_shards", "n_shards"):
        return Unknown(("of", held.key, name), hint=name)
    return None


@methods(ROWS)
def method(machine: Machine, held: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a table: most give another like it."""
    assert isinstance(held, Instance)
    if name == "map":
        return _mapped(machine, held, given, node)
    if name in _SAME:
        made = _like(machine, held, node)
        if name in _PARTS and not (name in _FITTED and _is_same_everywhere(given)):
            made.attributes["#apart"] = Unknown()
        if name in ("select", "take"):
            made.attributes[CHOSEN] = given.get(0, "indices") or given.get(0, "n") or Unknown()
        if name == "with_transform":
            made.attributes[TRANSFORM] = given.get(0, "transform") or NONE
        return made
    if name == "set_transform":
        held.attributes[TRANSFORM] = given.get(0, "transform") or NONE
    if name in ("set_format", "set_transform"):
        return NoneOf(name)
    return NONE if name in ("save_to_disk", "push_to_hub", "cleanup_cache_files") else Unknown()


def _like(machine: Machine, held: Instance, node: ast.AST) -> Instance:
    found = machine.instance(held.cls, ROWS, node)
    found.attributes.update({name: each for name, each in held.attributes.items() if name.startswith("#")})
    found.arguments = dict(held.arguments)
    return found


@item_of(ROWS)
def item(machine: Machine, held: Instance, index: Value, node: ast.AST) -> Value:
    """`table["train"]`: a part like it, or a column; `table[0]` a row."""
    parts = held.arguments.get("#0")
    if isinstance(parts, Mapping) and text_of(index) in parts.items:
        return parts.items[text_of(index)]
    name = text_of(index)
    if name not in ("train", "test", "validation", "valid", "dev"):
        return Unknown()
    if f"part {name}" not in held.attributes:
        part = held.attributes[f"part {name}"] = _like(machine, held, node)
        part.attributes[SPLIT] = index
    return held.attributes[f"part {name}"]


def _mapped(machine: Machine, held: Instance, given: Arguments, node: ast.AST) -> Value:
    function = given.get(0, "function")
    found = _like(machine, held, node)
    if function is None or not is_own(function):
        machine.escape(function)
        found.attributes["#row"] = Unknown()
        return found
    before = held.attributes.get("#row")
    row = Mapping(before.items, more=True) if isinstance(before, Mapping) else Mapping(more=True)
    named = given.keywords.get("fn_kwargs")
    extra = {str(key): each for key, each in named.items.items()} if isinstance(named, Mapping) else {}
    open_extra = Unknown() if named is not None and not isinstance(named, Mapping) else None
    first: list[Value] = [row]
    if is_constant(given.keywords.get("with_indices"), True):
        first.append(Unknown(plain=True))
    try:
        result = call(machine, function, Arguments(first, extra, double_star=open_extra), node)
    except (Raised, LeaveLoop, NextTurn):
        result = Unknown()
    if isinstance(result, Mapping):
        machine.emit(RowsMapped(machine.where(node), given, result))
        made = Mapping({**row.items, **result.items}, more=True)
        made.said = row.places() | result.places()
        found.attributes["#row"] = made
    else:
        found.attributes["#row"] = row if is_constant(result, None) else Unknown()
    return found


@package("evaluate")
def evaluate(machine: Machine, path: str, given: Arguments, node: ast.AST) -> Value | None:
    """`evaluate.load(...)`."""
    if path != "evaluate.load":
        return None
    made = machine.instance(Library("evaluate.EvaluationModule"), TEXT_METRIC, node)
    made.arguments = {"path": given.get(0, "path") or Unknown()}
    return made


@methods(TEXT_METRIC)
def metric_method(machine: Machine, metric: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a metric of Evaluate."""
    assert isinstance(metric, Instance)
    if name in ("compute", "add_batch"):
        machine.emit(TextsScored(machine.where(node), metric, given, given.values()))
    if name != "compute":
        return NONE
    found = Mapping(more=True)
    found.loaded = None
    return found
