from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, GradientsSwitched, OptimizerMade
from lightlint.explore.questions.queries import in_sight
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

# hooks of Lightning that run when the optimizers are there


class ThawedAfterOptimizer(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parameters that are frozen where an optimizer takes what is not, are thawed later, and get into no optimizer."""
        for path in entry.paths:
            made, switches = path.of(OptimizerMade), path.of(GradientsSwitched)
            held = {each for event in made for each in event.optimizer.parameters}
            trained = {each for event in path.of(Backward) for each in event.parameters}
            for event in made:
                late = {p for each in switches if each.on and each.time > event.time for p in each.parameters} - held
                if not late or not in_sight([event.optimizer]) or not event.optimizer.parameters:
                    continue
                others = [each.optimizer for each in made if each.optimizer is not event.optimizer]
                if any(each.more or not each.parameters for each in others):
                    continue  # which of these holds what is thawed is out of sight
                beside = _beside(path, event.optimizer.parameters)
                # an optimizer that may hold more than is in sight lacks what was left out for being frozen
                left = [p for p in late if p.told_frozen or not event.optimizer.more]
                lost = [p for p in left if not p.escaped and (p in trained or p in beside)]
                if any(_is_frozen(switches, p, event) for p in lost):
                    message = "a module is thawed after this took what was not frozen: its parameters are never updated"
                    yield Fault.at(event, message)


def _beside(path: Path, parameters: list[Tensor]) -> set[Tensor]:
    """The parameters of the modules that some parameters belong to."""
    every = (set(each.parameters()) for each in path.machine.objects if isinstance(each, Module))
    return {parameter for held in every if not held.isdisjoint(parameters) for parameter in held}


def _is_frozen(switches: Sequence[GradientsSwitched], parameter: Tensor, made: OptimizerMade) -> bool:
    """Whether a parameter was frozen when an optimizer was made."""
    before = [each for each in switches if each.time < made.time and parameter in each.parameters]
    return bool(before) and not before[-1].on
