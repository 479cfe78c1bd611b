"""Activation checkpointing: a part of a forward pass whose activations are computed once more for the backward pass."""

from __future__ import annotations

import ast
from copy import copy

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.events import Checkpointed
from lightlint.engine.machine import Machine
from lightlint.models import tensors
from lightlint.models.registry import function
from lightlint.values.core import Constant, Sequence, Unknown, Value, is_constant
from lightlint.values.training import Module, Tensor, tensors_in

_OWN = frozenset(["use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"])


@function("torch.utils.checkpoint.checkpoint")
def checkpoint(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """`checkpoint(function, *args)`: what the function gives; the reentrant kind needs an input with a gradient."""
    called = given.get(0, "function") or Unknown()
    if isinstance(called, Unknown):
        return tensors.derive(machine, node, *given.values())
    inner = given.behind(1)
    inner.keywords = {name: value for name, value in inner.keywords.items() if name not in _OWN | {"function"}}
    return _kept(machine, given, inner.values(), call(machine, called, inner, node), node)


@function("torch.utils.checkpoint.checkpoint_sequential")
def checkpoint_sequential(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """`checkpoint_sequential(functions, segments, input)`: one after the other, the last segment as it is."""
    functions, value = given.get(0, "functions"), given.get(2, "input") or Unknown()
    if isinstance(functions, Sequence) and not functions.more:
        for each in functions.items:
            value = call(machine, each, Arguments([value]), node)
        return value
    if isinstance(functions, Module):
        return call(machine, functions, Arguments([value]), node)
    return tensors.derive(machine, node, *given.values())


def _kept(machine: Machine, given: Arguments, inputs: list[Value], result: Value, node: ast.AST) -> Value:
    """The result as a checkpoint gives it, without its graph where that is lost."""
    if is_constant(given.keywords.get("use_reentrant"), False) or not machine.grad[-1] or not given.exact:
        return result
    unset = given.keywords.get("use_reentrant")
    sure = unset is None or is_constant(unset, True)
    reached = {each for tensor in tensors_in(result) for each in tensor.parameters}
    if not sure or not reached or not all(map(_is_plain, inputs)) or not any(isinstance(e, Tensor) for e in inputs):
        return result
    machine.emit(Checkpointed(machine.where(node), [*reached], inputs))
    return _without_graph(machine, result, node)


def _is_plain(value: Value) -> bool:
    """Whether an input surely has no gradient. One in a list does not count: reentrant checkpoints do not look there."""
    if not isinstance(value, Tensor):
        return isinstance(value, Constant) or (isinstance(value, Sequence) and not value.more)
    return not (value.requires_grad or value.parameter or value.escaped or value.mixed or value.guessed)


def _without_graph(machine: Machine, value: Value, node: ast.AST) -> Value:
    if isinstance(value, Tensor):
        return tensors.detached(machine, value, "checkpoint", node) if value.requires_grad else value
    if isinstance(value, Sequence):
        found = copy(value)
        found.items = [_without_graph(machine, each, node) for each in value.items]
        return found
    return value
