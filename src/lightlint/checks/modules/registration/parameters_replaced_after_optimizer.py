from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Backward, Called, OptimizerMade, PartReplaced, Stepped
from lightlint.values.core import Class, Value
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

# layers that take numbers only


class ParametersReplacedAfterOptimizer(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parameters that are trained and in no optimizer, put into a module after the optimizer of the rest was made."""
        for path in entry.paths:
            made = path.of(OptimizerMade)
            if not made or any(event.optimizer.escaped for event in made):
                continue
            open_ended = [event.time for event in made if event.optimizer.more]
            added = any(event.path == "add_param_group" for event in path.of(Called))
            held = {each for event in made for each in event.optimizer.parameters}
            reached = {each for event in path.of(Backward) for each in event.parameters}
            stepped = {event.optimizer for event in path.of(Stepped)}
            yield from _replaced_whole(path, made, reached)
            for event in path.events:
                if not isinstance(event, (AttributeSet, PartReplaced)):
                    continue
                module, new = (
                    (event.object, event.value) if isinstance(event, AttributeSet) else (event.module, event.after)
                )
                lost = [
                    each for each in _parameters_of(new) if each in reached and each not in held and not each.escaped
                ]
                before = [
                    each
                    for each in made
                    if each.time < event.time and each.optimizer in stepped and _shares(module, each)
                ]
                if added or any(each.made < time for each in lost for time in open_ended):
                    continue  # those may be among what is out of sight
                if open_ended and any(each not in before for each in made if each.optimizer in stepped):
                    continue
                if lost and before:
                    yield Fault.at(event, _MESSAGE)


def _replaced_whole(path: Path, made: Sequence[OptimizerMade], reached: set[Tensor]) -> Iterator[Fault]:
    """Modules that are trained in the place of one of their class, whose parameters an optimizer was made with before."""
    held = {each for event in made for each in event.optimizer.parameters}
    stepped = {event.optimizer for event in path.of(Stepped)}
    trained = [event for event in made if event.optimizer in stepped and not event.optimizer.more]
    idle = [event for event in trained if not reached & set(event.optimizer.parameters)]
    idle = [event for event in idle if not any(each.gradient_touched for each in event.optimizer.parameters)]
    modules = [each for each in path.machine.objects if isinstance(each, Module) and isinstance(each.cls, Class)]
    for event in idle:
        left = [each for each in modules if set(each.parameters()) & set(event.optimizer.parameters)]
        for module in modules:
            old = any(each.cls is module.cls and each is not module and not each.escaped for each in left)
            lost = [each for each in module.parameters() if each in reached and each not in held and not each.escaped]
            if old and lost and module.made > event.time and module.site is not None:
                yield Fault(module.site, _MESSAGE)


_MESSAGE = "these parameters are none of those the optimizer was made with, and are never updated"


def _parameters_of(value: Value) -> list[Tensor]:
    if isinstance(value, Module):
        return [each for each in value.parameters() if each.requires_grad]
    return [value] if isinstance(value, Tensor) and value.parameter and value.requires_grad else []


def _shares(module: Value, made: OptimizerMade) -> bool:
    """Whether an optimizer was made with parameters of a module."""
    held = set(made.optimizer.parameters)
    return isinstance(module, Module) and any(each in held for each in module.parameters())
