"""What mixes the examples of a batch two by two, and gives the targets of both as one: Mixup and CutMix."""

from __future__ import annotations

import ast

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import Transformed
from lightlint.engine.machine import Machine
from lightlint.models.names.kinds import MIXER
from lightlint.models.registry import calling
from lightlint.models.tensors.derivation import derive
from lightlint.models.tensors.forms import SOFT, forget
from lightlint.values.core import Sequence, Value
from lightlint.values.training import Instance, Tensor


@calling(MIXER)
def mixed(machine: Machine, mixer: Instance, given: Arguments, node: ast.AST) -> Value:
    """A batch and its targets, which are probabilities of the classes from here on."""
    values = (
        given.values() if given.star is None else [machine.models.part(machine, given.star, n, node) for n in (0, 1)]
    )
    made: list[Tensor] = [derive(machine, node, each, keep=True) for each in values]
    for each in made[1:2]:
        forget(each)
        each.dtype = SOFT
    whole = Sequence(made, "tuple")
    machine.emit(Transformed(machine.where(node), mixer, values, whole))
    return whole


def mixes(transform: Instance) -> bool:
    """Whether a transform does nothing but choose one that mixes."""
    held = next(iter(transform.arguments.values()), None)
    choices = held.items if transform.name == "RandomChoice" and isinstance(held, Sequence) and not held.more else ()
    return bool(choices) and all(isinstance(each, Instance) and each.kind == MIXER for each in choices)
