from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Called, Cleared, Clipped, Event
from lightlint.explore.questions.accelerators import accumulates, completes, is_synchronised, manager_of, scales

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site
    from lightlint.values.training import Instance

_TORCH = "torch.nn.utils.clip_grad_"


class AcceleratorRawClip(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Gradients of an Accelerator that torch clips while they are scaled, or before all of them are there."""
        by_torch = {event.site for path, events in entry.calls.items() if path.startswith(_TORCH) for event in events}
        for path in entry.paths:
            for event in path.of(Clipped):
                fault = _fault(path, event, by_torch)
                if fault is not None:
                    yield Fault.at(event, fault)


def _fault(path: Path, event: Clipped, by_torch: set[Site]) -> str | None:
    managers = [manager_of(each) for each in event.parameters]
    accelerator = managers[0] if managers and all(each is managers[0] for each in managers) else None
    if accelerator is None or accelerator.escaped or accelerator.open_arguments or not _is_through(path):
        return None
    raw = event.site in by_torch
    if raw and scales(accelerator) and not _is_unscaled(path, event, accelerator):
        return "torch clips gradients that the Accelerator has scaled: a limit for others than these"
    if not is_synchronised(event) and accumulates(accelerator) and _in_accumulate(path, event, accelerator):
        return "gradients are clipped before all batches of a step have added theirs"
    return None


def _is_unscaled(path: Path, event: Clipped, accelerator: Instance) -> bool:
    calls = (each for each in path.of(Called) if each.receiver is accelerator and each.name == "unscale_gradients")
    return any(each.time < event.time and each.where.same_turn(event.where) for each in calls)


def _is_through(path: Path) -> bool:
    return any(each.via == "accelerator" for each in path.of(Backward))


def _in_accumulate(path: Path, event: Clipped, accelerator: Instance) -> bool:
    """Whether the backward pass before it was one of several of a step, as `accelerator.accumulate` counts them, and added to
    what the ones before had left."""
    same = partial(_is_beside, event)
    before = [each for each in path.of(Backward) if same(each) and each.time < event.time]
    opened = [each for each in path.of(Called) if each.receiver is accelerator and each.name == "accumulate"]
    opened = [each for each in opened if same(each)]
    behind = sum(each.time < event.time for each in opened)
    if not before or not behind or completes(accelerator, behind, len(opened)):
        return False
    return not any(_clears(each, event) for each in path.of(Cleared) if same(each) and each.time < before[-1].time)


def _is_beside(event: Clipped, other: Event) -> bool:
    return other.where.same_turn(event.where)


def _clears(cleared: Cleared, event: Clipped) -> bool:
    """Whether nothing is left, each time a step is due, of what batches before it have added: then none is clipped again."""
    return not set(cleared.parameters).isdisjoint(event.parameters)
