from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Cleared, Stepped
from lightlint.explore.questions.queries import in_batch, once_in_several
from lightlint.values.core import Site
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class AccumulatedGradientsCleared(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients that are cleared unused before a step, taken once in so many batches, uses those of the same pass."""
        message = "clears the gradients in every iteration, and the optimizer steps once in several: the others are thrown away"
        for path in entry.paths:
            for event, step in _thrown_away(path):
                if _all_wait_alike(entry, step):
                    yield Fault.at(event, message)


def _all_wait_alike(entry: Entry, step: Stepped) -> bool:
    """Whether no other step in the loop, of another optimizer perhaps, uses gradients that this one lets go."""
    loop = step.where.turns[-1].loop.site
    others = [e for e in entry.of(Stepped) if e.where.turns and e.where.turns[-1].loop.site == loop]
    return all(_waits_for(each) == _waits_for(step) for each in others)


def _waits_for(step: Stepped) -> set[Site]:
    return {each.site for each in step.where.conditions if each.traits & {"periodic", "batches"}}


def _thrown_away(path: Path) -> Iterator[tuple[Cleared, Stepped]]:
    added: dict[Tensor, list[Backward]] = {}
    lost: dict[Tensor, tuple[Cleared, list[Backward]]] = {}
    for event in path.events:
        if isinstance(event, Backward):
            for each in event.parameters:
                added.setdefault(each, []).append(event)
        elif isinstance(event, Cleared):
            for each in event.parameters:
                passes = added.pop(each, None)
                if passes and in_batch(event.where) and not event.implicit and not event.where.depends_on("periodic"):
                    lost[each] = event, passes
        elif isinstance(event, Stepped):
            waits = once_in_several(event.where) and in_batch(event.where) and _is_plain(event.optimizer)
            for each in event.parameters if waits else []:
                cleared, passes = lost.get(each, (None, []))
                if cleared is not None and _are_alike(passes, added.get(each, []), event) and not each.gradient_touched:
                    yield cleared, event
                    break
            for each in event.parameters:
                lost.pop(each, None)
                added.pop(each, None)


def _is_plain(optimizer: Instance) -> bool:
    """Whether no code out of sight steps or clears it, as an Accelerator does."""
    manager = optimizer.arguments.get("#managed")
    return not optimizer.escaped and not (isinstance(manager, Instance) and manager.kind == "accelerator")


def _are_alike(lost: list[Backward], used: list[Backward], step: Stepped) -> bool:
    """Whether the passes that were thrown away are those of the step, some turns of its loop before."""
    outer = step.where.turns[:-1]
    same_loop = all(each.where.turns[: len(outer)] == outer for each in lost)
    return same_loop and {each.site for each in lost} == {each.site for each in used}
