"""Where the models are looked up: by canonical name of a function, by kind and name of a method."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TypeVar

from lightlint.engine.arguments import Arguments
from lightlint.engine.machine import Machine
from lightlint.values.core import Value
from lightlint.values.training import Instance, Module

FunctionModel = Callable[[Machine, Arguments, ast.AST], Value]
MethodModel = Callable[[Machine, Value, str, Arguments, ast.AST], Value]

FUNCTIONS: dict[str, FunctionModel] = {}
AttributeModel = Callable[[Machine, Value, str, ast.AST], Value | None]
MakerModel = Callable[[Machine, Instance, Arguments, ast.AST], None]
FunctionOf = Callable[[Machine, Instance, Arguments, ast.AST], Value]
ItemModel = Callable[[Machine, Instance, Value, ast.AST], Value]
PretrainedModel = Callable[[Machine, Module, str, Arguments, ast.AST], Value | None]
PackageModel = Callable[[Machine, str, Arguments, ast.AST], Value | None]
METHODS: dict[str, MethodModel] = {}
"""By kind of object; of a LightningModule by `LIGHTNING`, before those of other modules."""
ATTRIBUTES: dict[str, AttributeModel] = {}
"""Likewise; None is for what only methods give."""
MAKERS: dict[str, MakerModel] = {}
"""By kind of object: what the `__init__` of a library's class does, besides keeping what it is given."""
CALLS: dict[str, FunctionOf] = {}
"""By kind of object: what calling one does."""
ITEMS: dict[str, ItemModel] = {}
"""By kind of object: what `object[index]` gives."""
OF_PRETRAINED: dict[str, PretrainedModel] = {}
"""Methods of modules whose layers are out of sight, by name; None for what all modules do."""
PACKAGES: dict[str, PackageModel] = {}
"""By package: its functions and class methods that no model of its own is for; None for what it does not know."""
LIGHTNING = "LightningModule"
T = TypeVar("T")


def _into(table: dict[str, T], names: Iterable[str]) -> Callable[[T], T]:
    """A decorator that puts what it is given into a table, under each of some names."""

    def register(model: T) -> T:
        table.update(dict.fromkeys(names, model))
        return model

    return register


def function(*paths: str) -> Callable[[FunctionModel], FunctionModel]:
    """Make a model that of library functions."""
    return _into(FUNCTIONS, paths)


def attributes(*kinds: str) -> Callable[[AttributeModel], AttributeModel]:
    """Make a model that of the attributes of kinds of objects."""
    return _into(ATTRIBUTES, kinds)


def making(*kinds: str) -> Callable[[MakerModel], MakerModel]:
    """Make a model that of making kinds of objects."""
    return _into(MAKERS, kinds)


def calling(*kinds: str) -> Callable[[FunctionOf], FunctionOf]:
    """Make a model that of calling kinds of objects."""
    return _into(CALLS, kinds)


def of_pretrained(*names: str) -> Callable[[PretrainedModel], PretrainedModel]:
    """Make a model that of methods of modules whose layers are out of sight."""
    return _into(OF_PRETRAINED, names)


def item_of(*kinds: str) -> Callable[[ItemModel], ItemModel]:
    """Make a model that of `object[index]` for kinds of objects."""
    return _into(ITEMS, kinds)


def package(*names: str) -> Callable[[PackageModel], PackageModel]:
    """Make a model that of a package."""
    return _into(PACKAGES, names)


def methods(*kinds: str) -> Callable[[MethodModel], MethodModel]:
    """Make a model that of all methods of kinds of objects."""
    return _into(METHODS, kinds)


def is_lightning(value: Instance) -> bool:
    """Whether an object is a LightningModule."""
    return any(path.rpartition(".")[2] == LIGHTNING for path in value.libraries())
