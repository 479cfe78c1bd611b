"""DeepSpeed's engine: what all ranks do together; the rest stays out of sight."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call_unknown
from lightlint.engine.events import Collective
from lightlint.engine.events.huggingface import ManagedBackward
from lightlint.engine.machine import Machine
from lightlint.models.registry import attributes, calling, function, methods
from lightlint.values.core import NONE, Library, Mapping, Sequence, Unknown, Value
from lightlint.values.training import Instance

ENGINE, ACCUMULATION = "deepspeed engine", "gradient_accumulation_steps"
_TOGETHER = ("save_checkpoint", "load_checkpoint", "save_16bit_model", "save_fp16_model")


@function("deepspeed.initialize")
def initialize(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """`deepspeed.initialize(...)`: an engine, its optimizer, loader and schedule."""
    call_unknown(machine, Library("deepspeed.initialize"), given, node)
    engine = machine.instance(Library("deepspeed.DeepSpeedEngine"), ENGINE, node)
    engine.arguments, engine.open_arguments = given.by_name(), not given.exact
    return Sequence([engine, Unknown(hint="optimizer"), Unknown(hint="loader"), Unknown(hint="scheduler")], "tuple")


@attributes(ENGINE)
def attribute(machine: Machine, _: Value, name: str, node: ast.AST) -> Value | None:
    """An attribute of an engine; None for what all ranks call together."""
    own = name in (*_TOGETHER, "backward", ACCUMULATION)
    return None if own else machine.models.attribute(machine, Unknown(hint="engine"), name, node)


@methods(ENGINE)
def method(machine: Machine, value: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of an engine that all ranks call together."""
    assert isinstance(value, Instance)
    if name == "backward":
        if given.exact and "scale_wrt_gas" not in given.keywords:
            machine.emit(ManagedBackward(machine.where(node), value, given.get(0, "loss") or NONE))
        return call_unknown(machine, Unknown(hint=name), given, node)
    if name == ACCUMULATION:
        config = value.arguments.get("config") or value.arguments.get("config_params")
        known = config.items.get(name) if isinstance(config, Mapping) else None
        return known or Unknown(("of", value.key, name), hint=name, plain=True)
    machine.emit(Collective(machine.where(node), f"engine.{name}", given.values()))
    return Unknown(hint=name)


@calling(ENGINE)
def forward(machine: Machine, _: Instance, given: Arguments, node: ast.AST) -> Value:
    """A forward pass of the model in an engine."""
    found = call_unknown(machine, Unknown(hint="engine"), given, node)
    if isinstance(found, Unknown) and found.key is None:
        found.key = ("engine gave", machine.clock)
    return found
