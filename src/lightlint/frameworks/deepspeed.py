"""DeepSpeed's engine: what all ranks do together; the rest stays out of sight."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call_unknown
from lightlint.engine.events import Collective
from lightlint.engine.machine import Machine
from lightlint.models.registry import attributes, calling, function, methods
from lightlint.values.core import Library, Sequence, Unknown, Value
from lightlint.values.training import Instance

_ENGINE = "deepspeed engine"
_TOGETHER = ("save_checkpoint", "load_checkpoint", "save_16bit_model", "save_fp16_model")


@function("deepspeed.initialize")
def initialize(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """`deepspeed.initialize(...)`: an engine, its optimizer, loader and schedule."""
    call_unknown(machine, Library("deepspeed.initialize"), given, node)
    engine = machine.instance(Library("deepspeed.DeepSpeedEngine"), _ENGINE, node)
    return Sequence([engine, Unknown(hint="optimizer"), Unknown(hint="loader"), Unknown(hint="scheduler")], "tuple")


@attributes(_ENGINE)
def attribute(machine: Machine, _: Value, name: str, node: ast.AST) -> Value | None:
    """An attribute of an engine; None for what all ranks call together."""
    return None if name in _TOGETHER else machine.models.attribute(machine, Unknown(hint="engine"), name, node)


@methods(_ENGINE)
def method(machine: Machine, _: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of an engine that all ranks call together."""
    machine.emit(Collective(machine.where(node), f"engine.{name}", given.values()))
    return Unknown(hint=name)


@calling(_ENGINE)
def forward(machine: Machine, _: Instance, given: Arguments, node: ast.AST) -> Value:
    """A forward pass of the model in an engine."""
    return call_unknown(machine, Unknown(hint="engine"), given, node)
