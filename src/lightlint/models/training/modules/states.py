"""Weights put into a module, and the answer that this gives."""

from __future__ import annotations

import ast

from lightlint.engine.events import (
    LoadResultUsed,
    StateLoaded,
)
from lightlint.engine.machine import Machine
from lightlint.models.registry import attributes
from lightlint.values.core import (
    Library,
    Unknown,
    Value,
)
from lightlint.values.training import Instance


def load_result(machine: Machine, loaded: StateLoaded, node: ast.AST) -> Instance:
    """What `load_state_dict` returns."""
    result = machine.instance(Library("torch.nn.modules.module._IncompatibleKeys"), "load result", node)
    result.loaded = loaded  # type: ignore[attr-defined]
    return result


def note_replaced(machine: Machine, result: Instance, before: Value | None, node: ast.AST) -> None:
    """Write down that a name of the object loaded into is given what `load_state_dict` returned."""
    if result.kind == "load result" and before is result.loaded.object:  # type: ignore[attr-defined]
        note_use(machine, result, "=", node)


@attributes("load result")
def result_attribute(machine: Machine, result: Value, name: str, node: ast.AST) -> Value | None:
    """An attribute of what `load_state_dict` returns: a named tuple of two lists of keys."""
    if name not in ("missing_keys", "unexpected_keys", "count", "index", "_asdict", "_replace", "_fields"):
        note_use(machine, result, name, node)
    return Unknown(hint=name)


def note_use(machine: Machine, result: Value, name: str, node: ast.AST) -> None:
    """Write down that what `load_state_dict` returned is used as the model."""
    machine.emit(LoadResultUsed(machine.where(node), result.loaded, name))  # type: ignore[attr-defined]
