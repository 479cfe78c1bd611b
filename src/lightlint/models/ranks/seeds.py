"""What torch's generator was seeded with: whether each rank has another seed."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.machine import WORKER, Machine
from lightlint.models.registry import function
from lightlint.values.core import NO_TRAITS, NONE, Unknown, Value


@function("torch.manual_seed")
def _manual_seed(machine: Machine, given: Arguments, _: ast.AST) -> Value:
    machine.seed = given.get(0, "seed")
    return NONE


@function("torch.initial_seed", "torch.random.initial_seed")
def _initial_seed(machine: Machine, _: Arguments, __: ast.AST) -> Value:
    if machine.phases[-1] == WORKER:  # each worker has one of its own
        return Unknown(("worker seed",), frozenset({"worker"}), hint="initial_seed", plain=True)
    traits = machine.seed.traits & {"rank"} if machine.seed is not None else NO_TRAITS
    return Unknown(("initial seed",), traits, hint="initial_seed", plain=True)
