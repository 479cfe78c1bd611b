from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, ParametersChanged, RowsCleared, RowsSet, StateLoaded, Stepped, WeightSet
from lightlint.explore.questions.queries import identity, in_batch
from lightlint.values.core import Library, Mapping, Sequence, number_of, written
from lightlint.values.training import Module, Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value
    from lightlint.values.training import Tensor

_DECAYING = re.compile(r"(?:torch|bitsandbytes)\.optim\.(?:\w+\.)?(?:Paged)?AdamW(?:8bit|32bit)?")
"""Optimizers that decay weights unless they are told otherwise."""


class FrozenRowsDecay(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Rows of loaded weights that are kept from learning by a gradient of zero, and decay with each step."""
        clearing = [path for path in entry.paths if path.of(RowsCleared)]
        restored = {identity(each) for path in entry.paths for each in _changed_in_loop(path)} if clearing else set()
        for path in clearing:
            steps = path.of(Stepped)
            for event in path.of(RowsCleared):
                of = event.parameter
                step = next((each for each in steps if each.time > event.time and of in each.parameters), None)
                optimizer = step.optimizer if step is not None and in_batch(step.where) else None
                if identity(of) in restored or of.escaped or not isinstance(optimizer, Optimizer):
                    continue
                if _decay(optimizer, of) and _is_loaded(path, of):
                    where = "" if optimizer.site is None else f" (line {optimizer.site[1]})"
                    message = f"`{optimizer.name}`{where} decays the rows whose gradient is set to zero: they do not stay as they were loaded"
                    yield Fault.at(event, message)


def _changed_in_loop(path: Path) -> Iterator[Tensor]:
    """The parameters of which something is given other values between two steps, as by putting rows back."""
    given: list[RowsSet | WeightSet] = [*path.of(RowsSet), *path.of(WeightSet)]
    yield from (event.parameter for event in given if in_batch(event.where))
    for event in path.of(ParametersChanged):
        if in_batch(event.where) or event.name in ("mul_", "masked_fill_"):
            yield from event.parameters


def _decay(optimizer: Optimizer, parameter: Tensor) -> float:
    """By how much an optimizer decays a parameter, as far as that is known; 0 where not."""
    told: Value | None = optimizer.arguments.get("weight_decay")
    groups = optimizer.arguments.get("params")
    listed = groups.items if isinstance(groups, Sequence) else []
    if optimizer.open_arguments or optimizer.told or optimizer.escaped:
        return 0
    for group, held in zip(listed, optimizer.groups, strict=False):
        if isinstance(group, Mapping) and parameter in held:
            if group.more:
                return 0
            told = group.items.get("weight_decay", told)
    if told is None:
        path = optimizer.cls.path if isinstance(optimizer.cls, Library) else ""
        return 0.01 if _DECAYING.fullmatch(path) else 0
    return number_of(written(told)) or 0


def _is_loaded(path: Path, parameter: Tensor) -> bool:
    """Whether the numbers of a parameter are worth something: they come with a model, or out of a file."""
    owner = parameter.owner
    if not isinstance(owner, Module):
        return False
    if any(each.site == owner.site and each.path.endswith("from_pretrained") for each in path.of(Called)):
        return True
    loads = (each.object for each in path.of(StateLoaded))
    return any(isinstance(each, Module) and owner in each.modules() for each in loads)
