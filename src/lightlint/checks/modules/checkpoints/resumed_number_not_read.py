from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import StateLoaded, Stepped, Written
from lightlint.explore.questions.checkpoints import counted_behind, idle_keys, read_keys, saves_of, unread
from lightlint.explore.questions.queries import in_sight
from lightlint.values.core import Mapping, number_of
from lightlint.values.training import Optimizer

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value


class ResumedNumberNotRead(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Numbers that are saved with an optimizer's state, and not read by what loads this back to go on."""
        paths = [path for each in self.facts.rehearsed.entries for path in each.paths]
        read, idle = read_keys(paths), idle_keys(paths)
        for path in entry.paths:
            for load in path.of(StateLoaded):
                source = getattr(load.state, "loaded", None)
                if not isinstance(load.object, Optimizer) or not isinstance(source, tuple):
                    continue
                keys = read.get(source[0].site)
                if keys is None or not in_sight([load.object]):
                    continue
                for save in saves_of(paths, load.object):
                    unused = idle.get(source[0].site, set())
                    for key, value in unread(save, keys, unused):
                        yield from _faults(path, load, save, (key, key in unused), value)


def _faults(
    path: Path, load: StateLoaded, save: Written, entry: tuple[Hashable, bool], value: Value
) -> Iterator[Fault]:
    key, is_read = entry
    what = f"`{key}` is {'read from' if is_read else 'in'} its checkpoint and never {'used' if is_read else 'read'}"
    trained = any(event.optimizer is load.object and event.time > load.time for event in path.of(Stepped))
    for begun in counted_behind(path, load, value) if trained else ():
        if (first := number_of(begun.first)) is not None:
            yield Fault.at(begun, f"a resumed run starts at {first} again: {what}")
    later = [each for each in path.of(Written) if each.site == save.site and each.time > load.time]
    if later and _is_best(later[0], key):
        yield Fault.at(load, f"a resumed run forgets what it has to beat: {what}")


def _is_best(save: Written, key: Hashable) -> bool:
    """Whether a checkpoint is written because a number that it holds is better than one that the program writes down."""
    value = save.value.items.get(key) if isinstance(save.value, Mapping) else None
    measured = value.traits - {"index", "count"} if value is not None else frozenset()
    asked = [each for each in save.where.conditions if "better than written" in each.traits]
    return bool(measured) and any(measured <= each.traits for each in asked)
