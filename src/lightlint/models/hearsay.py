"""What a program does with something out of sight tells what it is: whatever has `parameters()` is a module."""

from __future__ import annotations

import ast
import re

from lightlint.engine.machine import Machine
from lightlint.models import tensors
from lightlint.models.annotations import of_library
from lightlint.values.core import Unknown, Value
from lightlint.values.training import Module, Optimizer, tensors_in

_OF_MODULES = frozenset(["parameters", "named_parameters"])
_OF_OPTIMIZERS = frozenset(["step", "zero_grad"])
_OPTIMIZER, _LOSS = re.compile("optim", re.IGNORECASE), re.compile("loss|crit(?!ic)|entropy", re.IGNORECASE)


def told(machine: Machine, holder: Value | None, method: str, node: ast.AST) -> Value | None:
    """What something unknown turns out to be when a method of it is called; None where that tells nothing."""
    if not isinstance(holder, Unknown) or holder.plain or holder.loaded is not None:
        return None
    if method in _OF_MODULES or (method == "eval" and _is_given_nothing(node)):
        holder.told = of_library(machine, "torch.nn.Module", node)
    elif method in _OF_OPTIMIZERS and _OPTIMIZER.search(holder.hint):
        holder.told = optimizer = of_library(machine, "torch.optim.Optimizer", node)
        if isinstance(optimizer, Optimizer):
            optimizer.parameters = [
                each for module in holder.lent if isinstance(module, Module) for each in module.parameters()
            ]
    if isinstance(holder.told, Module):
        holder.told.hint = holder.hint
    if holder.told is not None:
        holder.told.escaped = holder.escaped
    return holder.told


def _is_given_nothing(node: ast.AST) -> bool:
    """Whether a call has no arguments: `eval` of a table or a session has some."""
    return isinstance(node, ast.Call) and not node.args and not node.keywords


def result_of(machine: Machine, hint: str, values: list[Value], node: ast.AST) -> Value | None:
    """What something unknown that is called a loss function gives for the answers of a model: a loss."""
    if not _LOSS.search(hint) or not any(each.graph for value in values for each in tensors_in(value)):
        return None
    made = tensors.derive(machine, node, *values)
    made.role, made.guessed, made.mixed = "loss", True, True
    return made
