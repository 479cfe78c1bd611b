"""torch's average of a model's weights: a copy of the model in a wrapper, whose parameters follow."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.machine import Machine
from lightlint.models.python.standard import copied
from lightlint.models.registry import function
from lightlint.models.training.modules import opaque
from lightlint.values.core import Library, Value
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
