"""Averages of a model's weights: torch's, a copy of the model in a wrapper, and those that are kept beside the model."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call_unknown
from lightlint.engine.machine import Machine
from lightlint.models.python.standard import copied
from lightlint.models.registry import function, methods
from lightlint.models.training.modules import opaque
from lightlint.values.core import NONE, Library, Method, Value
from lightlint.values.training import Module


@function("torch.optim.swa_utils.AveragedModel")
def averaged(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """`AveragedModel(model)`."""
    model = given.get(0, "model")
    if not isinstance(model, Module):
        return opaque(machine, node, "torch.optim.swa_utils.AveragedModel")
    made = machine.new(Module, Library("torch.optim.swa_utils.AveragedModel"), node)
    made.wraps, made.wrapper, made.device = copied(machine, model, node, {}), "averaged", model.device
    return made


@methods("average")
def beside(machine: Machine, average: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of an average that is kept beside the model: what it does to parameters is told by the call."""
    return NONE if name in _OF_PARAMETERS else call_unknown(machine, Method(average, name), given, node)


_OF_PARAMETERS = frozenset(["step", "update", "store", "copy_to", "restore", "to", "pin_memory"])
