"""Forward passes of blocks that repeat: what a block does is seen the first time, and goes without saying then."""

from __future__ import annotations

import ast
from collections.abc import Hashable

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.events import AttributeRead, Called, Left, Looped
from lightlint.engine.machine import Machine
from lightlint.models import tensors
from lightlint.values.core import Bound, Constant, Function, Sequence, Value
from lightlint.values.training import Module, Tensor

_SAID_ONCE = (Called, Looped, Left, AttributeRead)
"""Events that need not be written down for each block again."""


def forward(machine: Machine, module: Module, own: Function, given: Arguments, node: ast.AST) -> Value:
    """The `forward` of a module of the program; inside of another's the next of its like is not run again."""
    if len(machine.forwards) < 2:
        return call(machine, Bound(module, own), given, node)
    key = _key(machine, module, own, given)
    known = machine.passes.get(key) if key is not None else None
    if known is not None:
        return _again(machine, module, known, given, node)
    before = len(machine.events)
    result = call(machine, Bound(module, own), given, node)
    if key is not None and _repeats(result) and all(isinstance(each, _SAID_ONCE) for each in machine.events[before:]):
        machine.passes[key] = result
    return result


def _key(machine: Machine, module: Module, own: Function, given: Arguments) -> Hashable | None:
    """What two passes share that give the like, None for one that may not repeat."""
    kinds = [_kind(each) for each in (*given.positional, *given.keywords.values())]
    if None in kinds or not given.exact or module.escaped:
        return None
    held = frozenset((name, _kind(each) or type(each).__name__) for name, each in module.attributes.items())
    return (id(own.node), module.training, machine.grad[-1], tuple(kinds), tuple(given.keywords), held)


def _kind(value: Value) -> Hashable | None:
    if isinstance(value, Constant):
        return value.key
    return (value.role, value.device, value.dtype, value.form, value.leaf) if isinstance(value, Tensor) else None


def _repeats(result: Value) -> bool:
    """Whether a result is made of tensors only that came the straight way."""
    if isinstance(result, Sequence):
        return bool(result.items) and not result.more and all(map(_repeats, result.items))
    return isinstance(result, Tensor) and not (result.leaf or result.cuts or result.escaped)


def _again(machine: Machine, module: Module, known: Value, given: Arguments, node: ast.AST) -> Value:
    for each in module.modules():
        each.calls += each is not module
    sources = [*given.values(), *module.parameters()]

    def like(earlier: Value) -> Value:
        if isinstance(earlier, Sequence):
            return Sequence([like(each) for each in earlier.items], earlier.kind)
        assert isinstance(earlier, Tensor)
        made = tensors.derive(machine, node, *sources, graph=bool(earlier.graph) or not machine.grad[-1])
        made.role, made.form, made.dtype = earlier.role, earlier.form, earlier.dtype
        made.layer, made.as_given = earlier.layer, earlier.as_given
        made.device, made.sure_device, made.activation = earlier.device, earlier.sure_device, earlier.activation
        made.guessed, made.mixed, made.traits = earlier.guessed, earlier.mixed, made.traits | earlier.traits
        return made

    return like(known)
