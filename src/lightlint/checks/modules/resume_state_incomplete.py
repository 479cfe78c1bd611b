from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, ScheduleMade, ScheduleStepped, StateLoaded, Stepped
from lightlint.explore.queries import scales
from lightlint.finding import Tier
from lightlint.values.core import Mapping, Value
from lightlint.values.training import Instance, Optimizer, Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path


class ResumeStateIncomplete(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Checkpoints with the state of an optimizer, which is loaded back, and none of its schedule or scaler."""
        paths = [path for each in self.facts.rehearsed.entries for path in each.paths]
        for path in entry.paths:
            for save in path.of(Called):
                content = save.argument("obj", 0) if save.path == "torch.save" else None
                if not isinstance(content, Mapping) or content.more:
                    continue
                sources = [each.source for each in content.items.values() if isinstance(each, Mapping)]
                loaded = {_identity(event.object) for each in paths for event in each.of(StateLoaded)}
                resumed = {_identity(each) for each in sources if isinstance(each, Optimizer)} & loaded
                saved = set(map(_identity, sources))
                for each in _counting(paths) if resumed else ():
                    mine = not isinstance(each, Schedule) or _identity(each.optimizer) in resumed
                    if mine and _is_of(path, each) and _identity(each) not in loaded:
                        yield _fault(save, each, is_saved=_identity(each) in saved)


def _fault(save: Called, each: Instance, *, is_saved: bool) -> Fault:
    of = "its scheduler" if isinstance(each, Schedule) else "the scaler"
    what = "is saved and never loaded back" if is_saved else "is not in the checkpoint"
    message = f"the optimizer is saved and loaded back, the state of {of} {what}"
    return Fault.at(save, message, tier=None if isinstance(each, Schedule) else Tier.NOTE)


def _counting(paths: list[Path]) -> Iterator[Instance]:
    """The schedules and scalers of a program that are stepped, and go by what they have counted."""
    for path in paths:
        told = {event.schedule for event in path.of(ScheduleStepped) if event.args and not _watches(event.schedule)}
        stepped = {event.schedule for event in path.of(ScheduleStepped)} - told
        made = [event.schedule for event in path.of(ScheduleMade)]
        yield from (each for each in made if each in stepped and not each.escaped and not _is_set(each))
        scalers = {event.scaler for event in path.of(Stepped) if scales(event.scaler)}
        yield from (each for each in scalers if each is not None)


def _watches(schedule: Schedule) -> bool:
    """Whether a step takes a metric, and no epoch."""
    return schedule.name == "ReduceLROnPlateau"


def _is_set(schedule: Schedule) -> bool:
    """Whether a schedule may be told where to go on."""
    return schedule.open_arguments or "last_epoch" in schedule.arguments


def _is_of(path: Path, each: Instance) -> bool:
    """Whether an object lives in a path, too: made at the same place, before."""
    return any(_identity(other) == _identity(each) for other in path.machine.objects)


def _identity(value: Value | None) -> Hashable:
    """What an object is in every rehearsal: where and as which it was made."""
    return (value.site, value.serial) if isinstance(value, Instance) else None
