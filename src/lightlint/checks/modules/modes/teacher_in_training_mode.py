from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import (
    Backward,
    Forward,
    ModeSet,
    OptimizerMade,
    ParametersChanged,
    PartPassed,
    StateLoaded,
    Stepped,
    WeightSet,
)
from lightlint.explore.questions.evaluation import is_saved_state
from lightlint.explore.questions.queries import acts_by_mode, in_batch, in_sight, sure
from lightlint.values.core import Constant, Library
from lightlint.values.training import Module, Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.training import Instance, Tensor

_MEANT = re.compile(
    r"(?:^|_)mc(?:$|_|[A-Z])|monte|bayes|uncertain|ensembl|dropout|calib|bn_|_bn|stat|precise|warm|^G$|[Gg]enerator",
    re.IGNORECASE,
)


class TeacherInTrainingMode(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules with loaded weights that nothing trains, and that give something to a training in training mode."""
        changed = _changed(entry)
        loaded = {event.object for event in entry.of(StateLoaded) if is_saved_state(event)}
        loaded |= {event.module for event in entry.of(Forward) if _came_trained(event.module)}
        fixed = {each for each in loaded if isinstance(each, Module) and not changed & set(each.parameters())}
        steps = [event.optimizer for event in entry.of(Stepped)]
        trains = any(True for _ in entry.of(Backward)) and steps and not any(_may_hold_more(each) for each in steps)

        def is_fault(event: Forward) -> bool:
            mine = [*event.module.modules(), *event.module.parameters()] if event.module in fixed else []
            known = bool(mine) and in_sight(mine) and acts_by_mode(event.module, event.acting)
            return event.training and known and in_batch(event.where) and not _is_meant(event)

        seen = all(path.finished for path in entry.paths)  # else it may be trained behind the end of one
        for event in sure(entry, Forward, is_fault) if trains and fixed and seen else ():
            message = "a module with loaded weights that is not trained here gives its answers in training mode: dropout drops, batch norm goes by this batch alone"
            yield Fault.at(event, message)
        for path in entry.paths if seen and any(True for _ in entry.of(Backward)) else ():
            yield from _as_parts(path, changed)


def _came_trained(module: Module) -> bool:
    """Whether a network of torchvision was made with the weights that come with it."""
    weights = module.arguments.get("weights") or module.arguments.get("pretrained")
    told = isinstance(weights, Library) or (isinstance(weights, Constant) and bool(weights.value))
    return told and isinstance(module.cls, Library) and module.cls.path.startswith("torchvision.models.")


def _as_parts(path: Path, changed: set[Tensor]) -> Iterator[Fault]:
    """Frozen parts of a module that is trained, which were brought into training mode with the whole."""
    loaded = {event.object for event in path.of(StateLoaded)}
    for event in path.of(PartPassed):
        part = event.module
        frozen = not any(each.requires_grad or each in changed for each in part.parameters())
        if part not in loaded or not frozen or not event.training or not in_batch(event.where) or _is_meant(event):
            continue
        whole = [each for each in path.of(ModeSet) if each.training and each.time < event.time and _has(each, part)]
        known = whole and in_sight([*part.modules(), *part.parameters()]) and acts_by_mode(part)
        if known and whole[-1].module is not part:
            message = "this brings a part with loaded weights into training mode that is not trained: dropout drops in its answers, batch norm goes by this batch alone"
            yield Fault.at(whole[-1], message, event.site)


def _has(event: ModeSet, part: Module) -> bool:
    return event.module is not None and part in event.module.modules()


def _changed(entry: Entry) -> set[Tensor]:
    """The parameters that some rehearsal changes, or gives to an optimizer."""
    found = {each for event in entry.of(Stepped) for each in event.parameters}
    found |= {each for event in entry.of(OptimizerMade) for each in event.optimizer.parameters}
    found |= {
        each for event in entry.of(ParametersChanged) if not event.name.startswith("init.") for each in event.parameters
    }
    return found | {event.parameter for event in entry.of(WeightSet)}


def _may_hold_more(optimizer: Instance) -> bool:
    """Whether an optimizer may train other parameters than those in sight."""
    return isinstance(optimizer, Optimizer) and ((optimizer.more and not optimizer.of_one) or optimizer.assumed)


def _is_meant(event: Forward | PartPassed) -> bool:
    """Whether names say that dropout is wanted, or the statistics of the batch."""
    names = [event.module.name, *(call.function.name for call in event.where.calls)]
    return any(map(_MEANT.search, names))
