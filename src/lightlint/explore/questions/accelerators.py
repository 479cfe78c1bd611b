"""What an Accelerator is known to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import gcd
from typing import TYPE_CHECKING

from lightlint.engine.events import Event
from lightlint.values.core import Unknown, Value, is_constant, number_of, text_of, written
from lightlint.values.training import Instance, Optimizer, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Path

_ENGINES = ("DeepSpeedPlugin", "MegatronLMPlugin")


def set_up_by(parameter: Tensor) -> Instance | None:
    """The Fabric or Accelerator that set up the model that a parameter belongs to."""
    return parameter.owner.managed_by if parameter.owner is not None else parameter.managed_by


def manager_of(value: Instance | Tensor | None) -> Instance | None:
    """The Accelerator that prepared an optimizer, or the model that a parameter belongs to."""
    found: Value | None = None
    if isinstance(value, Optimizer):
        found = value.arguments.get("#managed")
    elif isinstance(value, Tensor):
        found = set_up_by(value)
    return found if isinstance(found, Instance) and found.kind == "accelerator" else None


def scales(accelerator: Instance) -> bool:
    """Whether it surely scales the loss."""
    return text_of(accelerator.arguments.get("mixed_precision")) == "fp16"


def has_engine(accelerator: Instance) -> bool:
    """Whether it surely has an engine that does the backward pass: FSDP leaves that to autograd."""
    return any(isinstance(each, Unknown) and each.hint in _ENGINES for each in accelerator.arguments.values())


def accumulates(accelerator: Instance) -> bool:
    """Whether it accumulates gradients over several batches, or is told how many by the run."""
    steps = accelerator.arguments.get("gradient_accumulation_steps")
    number = number_of(written(steps))
    return steps is not None and not is_constant(steps, None) and (number is None or number > 1)


def completes(accelerator: Instance, opened: int, of: int) -> bool:
    """Whether a step may be due with each batch, behind so many of the `accumulate` that each batch opens: it counts these, and
    not the batches."""
    number = number_of(written(accelerator.arguments.get("gradient_accumulation_steps")))
    together = gcd(opened, of)
    return together % int(number) == 0 if number is not None and number >= 1 else together > 1


def is_synchronised(event: Event) -> bool:
    """Whether something happens only where gradients are synchronised."""
    return any(_names_sync(each.key) and each.outcome for each in event.where.conditions)


def _names_sync(key: object) -> bool:
    return isinstance(key, tuple) and (key[:1] == ("sync gradients",) or any(map(_names_sync, key)))


def code_of(path: Path) -> Iterator[ast.AST]:
    """All that stands in the files of the project that have run on a path, also what has not."""
    trees = (path.machine.sources.tree(file) for file in path.machine.modules)
    return (node for tree in trees if tree is not None for node in ast.walk(tree))
