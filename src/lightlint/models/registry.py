"""Where the models are looked up: by canonical name of a function, by kind and name of a method."""

from __future__ import annotations

import ast
from collections.abc import Callable

from lightlint.engine.arguments import Arguments
from lightlint.engine.machine import Machine
from lightlint.values.core import Value
from lightlint.values.training import Instance

FunctionModel = Callable[[Machine, Arguments, ast.AST], Value]
MethodModel = Callable[[Machine, Value, str, Arguments, ast.AST], Value]

FUNCTIONS: dict[str, FunctionModel] = {}
AttributeModel = Callable[[Machine, Value, str, ast.AST], Value | None]
METHODS: dict[str, MethodModel] = {}
"""By kind of object; of a LightningModule by `LIGHTNING`, before those of other modules."""
ATTRIBUTES: dict[str, AttributeModel] = {}
"""Likewise; None is for what only methods give."""
LIGHTNING = "LightningModule"


def function(*paths: str) -> Callable[[FunctionModel], FunctionModel]:
    """Make a model that of library functions."""

    def register(model: FunctionModel) -> FunctionModel:
        for path in paths:
            FUNCTIONS[path] = model
        return model

    return register


def attributes(*kinds: str) -> Callable[[AttributeModel], AttributeModel]:
    """Make a model that of the attributes of kinds of objects."""

    def register(model: AttributeModel) -> AttributeModel:
        for kind in kinds:
            ATTRIBUTES[kind] = model
        return model

    return register


def methods(*kinds: str) -> Callable[[MethodModel], MethodModel]:
    """Make a model that of all methods of kinds of objects."""

    def register(model: MethodModel) -> MethodModel:
        for kind in kinds:
            METHODS[kind] = model
        return model

    return register


def is_lightning(value: Instance) -> bool:
    """Whether an object is a LightningModule."""
    return any(path.rpartition(".")[2] == LIGHTNING for path in value.libraries())
