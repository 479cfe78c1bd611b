from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Collective, Event, GroupStarted, ParametersChanged, StateLoaded, Stepped
from lightlint.explore.questions.queries import is_cut_off
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class ParametersChangedOnOneRank(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parameters under DDP that a test of the rank changes on some ranks, and that all of them train after that."""
        for pair in entry.pairs():
            for path, other in (pair, pair[::-1]):
                if other.raised:  # what it would have changed behind that nobody knows
                    continue
                there = {event.site for event, _ in _changes(other)}
                for event, parameters in _changes(path):
                    apart = event.site not in there and event.where.depends_on("rank")
                    apart = apart and not is_cut_off(event.where)
                    if apart and _trains(path, event, parameters) and not _brings_together(path, event):
                        what = event.name if isinstance(event, ParametersChanged) else "load_state_dict"
                        message = f"`{what}` changes a DDP model on some ranks only: the copies stay different"
                        yield Fault.at(event, message)


def _changes(path: Path) -> Iterator[tuple[ParametersChanged | StateLoaded, list[Tensor]]]:
    """The events that change parameters under DDP by hand."""
    for event in path.of(ParametersChanged):
        if any(each.owner is not None and each.owner.within_ddp is not None for each in event.parameters):
            yield event, event.parameters
    for loaded in path.of(StateLoaded):
        module = loaded.object
        if isinstance(module, Module) and (module.within_ddp is not None or module.wrapper == "ddp"):
            yield loaded, module.parameters()


def _trains(path: Path, event: Event, parameters: list[Tensor]) -> bool:
    held = {id(each) for each in parameters}
    return any(each.time > event.time and held & {id(p) for p in each.parameters} for each in path.of(Stepped))


def _brings_together(path: Path, event: Event) -> bool:
    """Whether the ranks exchange something behind a change that could be the parameters, or wrap the model anew."""
    exchanged = [each for each in path.of(Collective) if "barrier" not in each.name]
    wrapped = [each for each in path.of(GroupStarted) if each.by == "DistributedDataParallel"]
    return any(each.time > event.time for each in (*exchanged, *wrapped))
