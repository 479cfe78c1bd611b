"""PEFT: adapters around a model, made, loaded and merged."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events.huggingface import AdapterAdded
from lightlint.engine.machine import Machine
from lightlint.models.registry import package
from lightlint.models.training import modules
from lightlint.values.core import Library, Unknown, Value, is_constant
from lightlint.values.training import Module

ADAPTER_CLASS = "peft.PeftModel"


def wrap(
    machine: Machine, base: Module, config: Value | None, node: ast.AST, loaded: Arguments | None = None
) -> Module:
    """An adapter around a model, whose own parameters are frozen; a loaded one is frozen, too, unless it is to be trained."""
    made = machine.new(Module, Library(ADAPTER_CLASS), node)
    made.wraps, made.wrapper, made.opaque = base, "adapter", True
    made.training, made.device = base.training, base.device
    for each in base.parameters():
        each.requires_grad = False
    trainable = loaded.get(3, "is_trainable") if loaded is not None else None
    mine = modules.parameter(machine, made, node)
    mine.requires_grad = loaded is None or is_constant(trainable, True)
    made.own = [mine]
    made.open_arguments = loaded is not None and not loaded.exact
    machine.emit(AdapterAdded(machine.where(node), made, base, config, loaded is not None, trainable))
    return made


@package("peft")
def peft(machine: Machine, path: str, given: Arguments, node: ast.AST) -> Value | None:
    """A function or class method of PEFT."""
    last = path.rpartition(".")[2]
    first = given.get(0, "model")
    if last in ("get_peft_model", "inject_adapter_in_model") and isinstance(first, Module):
        return wrap(machine, first, given.get(1, "peft_config"), node)
    if last == "from_pretrained" and "PeftModel" in path and isinstance(first, Module):
        return wrap(machine, first, None, node, given)
    if last == "from_pretrained" and path.split(".")[-2].startswith("AutoPeft"):
        base = modules.opaque(machine, node, path)
        base.open_arguments = True
        made = wrap(machine, base, None, node, Arguments(keywords=given.keywords, double_star=given.double_star))
        return made
    if last in ("prepare_model_for_kbit_training", "prepare_model_for_int8_training") and isinstance(first, Module):
        for each in first.parameters():
            each.requires_grad = False
        first.attributes["#dtype"] = Unknown()
        return first
    return None
