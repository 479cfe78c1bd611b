from __future__ import annotations

import pathlib
import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import (
    AttributeSet,
    Called,
    Restored,
    ScheduleMade,
    ScheduleStepped,
    StateLoaded,
    StateRead,
    Stepped,
    Written,
)
from lightlint.explore.questions.checkpoints import counted_behind, read_keys, saves_of
from lightlint.explore.questions.queries import holds, identity_of, in_sight, scales
from lightlint.finding import Tier
from lightlint.values.core import Class, Mapping, Sequence, is_constant
from lightlint.values.training import Instance, Module, Optimizer, Schedule

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site, Value

_NAMES = re.compile(r"\b(?:lr_scheduler|GradScaler|optim|optimizer|scheduler)\b")
"""What a file names that knows of what it saves; another saves what it is handed, and who hands that over is told."""
_LOADS = re.compile(r"\.load_state_dict\(")


class ResumeStateIncomplete(Check):
    def wants_users(self) -> tuple[str, ...]:
        """Where this file has what saves and loads: who calls that tells of what."""
        trains = any(self.names.method(each) == "backward" for each in self.tree.all(cst.Call))
        saves = any(self.tree.function(each) is not None for each in self.names.called("torch.save"))
        kept = not trains or _is_kept_by(self.facts.source.text)
        return ("torch.optim", "optim.") if saves and kept else ()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Checkpoints with the state of an optimizer, which is loaded back, and none of its schedule or scaler."""
        own = self.facts.rehearsed.entries
        is_own = entry in own
        entries = own if is_own else self.facts.rehearsed.of_users(self.wants_users())
        paths = [path for each in entries for path in each.paths]
        if ".load" not in entry.calls and not any(path.of(StateLoaded) for path in paths):
            return
        if not all(each.turned for each in entries) and not self._reaches_all_loads(paths):
            return  # what is never loaded may be loaded behind a test that there was no budget to turn
        for path in entry.paths:
            for save in path.of(Called):
                content = save.argument("obj", 0) if save.path == "torch.save" else None
                if not isinstance(content, Mapping) or self._is_told_elsewhere(content, is_own=is_own):
                    continue
                states = _states(content)
                if states is None:
                    continue
                sources = [each.source for each in states]
                loaded = {identity_of(event.object) for each in paths for event in each.of(StateLoaded)}
                loaded -= {identity_of(each) for other in paths for each in _rolled_back(other)}
                resumed = {identity_of(each) for each in sources if isinstance(each, Optimizer)} & loaded
                saved = set(map(identity_of, sources))
                whole = _saved_whole(paths, save.site)
                for each in _counting(paths) if resumed else ():
                    mine = not isinstance(each, Schedule) or identity_of(each.optimizer) in resumed
                    known = identity_of(each) in loaded | whole
                    if mine and _is_of(path, each) and not known and not self._starts_anew():
                        several = any(
                            isinstance(one, Schedule) and identity_of(one) != identity_of(each) for one in sources
                        )
                        fault = _fault(save, each, is_saved=identity_of(each) in saved, several=several)
                        here = self.facts.rehearsed.nearest(save.where)  # the file may keep another's checkpoints
                        if here == save.site and content.site is not None and not _is_inside(content.site, here):
                            here = content.site
                        if save.site[0] != str(self.facts.path):
                            here = self._keeper(path, save, resumed) or here
                        loads = (self._load_of(paths, resumed) if identity_of(each) in saved else None) or here
                        yield fault if loads is None else replace(fault, site=loads, also=(save.site,))
        yield from _without_optimizer(entry, paths)
        yield from _of_fabric(entry, paths)

    def _reaches_all_loads(self, paths: list[Path]) -> bool:
        """Whether some path comes to each place in sight that loads a state."""
        reached = {event.site[:2] for path in paths for event in path.of(StateLoaded)}
        for file in (self.facts.path, *self.facts.rehearsed.others):
            for row, line in enumerate(self.facts.project.text(file).splitlines(), 1):
                if _LOADS.search(line.partition("#")[0]) and (str(file), row) not in reached:
                    return False
        return True

    def _load_of(self, paths: list[Path], optimizers: set[Hashable]) -> Site | None:
        """Where this file has the state of an optimizer loaded back."""
        loads = (event for path in paths for event in path.of(StateLoaded) if identity_of(event.object) in optimizers)
        return next((site for event in loads if (site := self.facts.rehearsed.nearest(event.where)) is not None), None)

    def _is_told_elsewhere(self, content: Mapping, *, is_own: bool) -> bool:
        """Whether another file spells a checkpoint out and is asked for it: one that saves and loads."""
        file = content.site[0] if content.site is not None else ""
        text = self.facts.project.text(pathlib.Path(file)) if file != "" else ""
        names = _NAMES.search(text) is not None
        if file == str(self.facts.path):
            return not is_own and not names
        return not is_own or (_is_kept_by(text) and names)

    def _keeper(self, path: Path, save: Called, optimizers: set[Hashable]) -> Site | None:
        """Where this file makes the object that another file saves by, of whatever it is handed: an optimizer among it."""
        for each in path.machine.objects:
            keeps = isinstance(each.cls, Class) and each.cls.file == save.site[0] and each.site is not None
            if keeps and each.site is not None and self.facts.rehearsed.span(each.site) is not None:
                held = {identity_of(one) for value in each.attributes.values() for one in _held(value)}
                if held & optimizers:
                    return each.site
        return None

    def _starts_anew(self) -> bool:
        """Whether the schedule is stepped on to where the run was, or begins again on purpose."""
        return self._skips_ahead() or any(map(self._sets_rate, self.tree.all(cst.Assign)))

    def _sets_rate(self, assign: cst.Assign) -> bool:
        """Whether the rates of an optimizer are set beside the load of its state: `for group in groups: group["lr"] = rate`."""
        target = assign.targets[0].target
        if not isinstance(target, cst.Subscript) or self._key_of(target) != "lr":
            return False
        loops, group = self.tree.loops(assign), target.value
        if loops and isinstance(loops[0], cst.For) and self.names.key(loops[0].target) == self.names.key(group):
            group, loops = loops[0].iter, loops[1:]
        elif isinstance(group, cst.Subscript):
            group = group.value
        word = self._key_of(group) if isinstance(group, cst.Subscript) else group
        of_groups = word == "param_groups" or (isinstance(word, cst.Attribute) and word.attr.value == "param_groups")
        beside = self.tree.own(self.tree.owner(assign), cst.Call)
        return of_groups and not loops and any(self.names.method(each) == "load_state_dict" for each in beside)

    def _key_of(self, item: cst.Subscript) -> object:
        index = item.slice[0].slice
        return self.names.constant(index.value) if isinstance(index, cst.Index) else None

    def _skips_ahead(self) -> bool:
        """Whether a turn that a checkpoint has behind it only steps a schedule: such a block ends in `continue`."""
        for each in self.tree.all(cst.If):
            lines = [line.body for line in each.body.body if isinstance(line, cst.SimpleStatementLine)]
            parts = [part for line in lines for part in line]
            calls = [part.value for part in parts if isinstance(part, cst.Expr)]
            steps = (call for call in calls if self.names.method(call) == "step")
            ends = bool(parts) and isinstance(parts[-1], cst.Continue)
            if ends and any("sched" in self.code.text_of(call).lower() for call in steps):
                return True
        return False


def _of_fabric(entry: Entry, paths: list[Path]) -> Iterator[Fault]:
    """States that Fabric saves and puts back, with an optimizer and without the schedule of its learning rate."""
    loaded = {identity_of(event.object) for path in paths for event in path.of(StateLoaded)}
    for event in entry.of(Restored):
        held = {identity_of(each) for each in event.state.items.values()}
        optimizers = {identity_of(each) for each in event.state.items.values() if isinstance(each, Optimizer)}
        for each in _counting(paths) if optimizers and not event.state.more else ():
            mine = isinstance(each, Schedule) and identity_of(each.optimizer) in optimizers
            if mine and identity_of(each) not in held | loaded:
                message = "the optimizer is saved and loaded back, the state of its scheduler is not in the checkpoint"
                here = event.state.site is not None and event.state.site[0] == event.site[0]
                site = event.state.site if here and event.state.site is not None else event.site
                yield Fault(site, message, None, (event.site,), event.where.places[1:])


def _saved_whole(paths: list[Path], site: Site) -> set[Hashable]:
    """The objects that are put into the checkpoints saved at a place, and not their states."""
    saves = [each.argument("obj", 0) for path in paths for each in path.of(Called) if each.site == site]
    kept = (value for content in saves if isinstance(content, Mapping) for value in content.items.values())
    return {identity_of(one) for value in kept for one in _held(value)}


def _is_inside(site: Site, other: Site) -> bool:
    """Whether a place lies in another, or in another file than it."""
    return site[0] != other[0] or (other[1:3] <= site[1:3] and site[3:] <= other[3:])


def _states(content: Mapping | Sequence) -> list[Mapping] | None:
    """The states in a checkpoint, in its lists and dicts, too; None where there may be others."""
    if isinstance(content, Mapping) and content.source is not None:
        return [content]
    if content.more:
        return None
    held = [*content.items.values()] if isinstance(content, Mapping) else content.items
    parts = [_states(each) for each in held if isinstance(each, (Mapping, Sequence))]
    return None if None in parts else [each for part in parts if part is not None for each in part]


def _held(value: Value) -> list[Value]:
    """What a container holds, or the value itself."""
    if isinstance(value, Mapping):
        return [*value.items.values()]
    return [*value.items] if isinstance(value, Sequence) else [value]


def _is_kept_by(text: str) -> bool:
    return "load_state_dict" in text and "torch.save" in text


def _fault(save: Called, each: Instance, *, is_saved: bool, several: bool) -> Fault:
    scheduler = "one of its schedulers" if several else "its scheduler"
    of = scheduler if isinstance(each, Schedule) else "the scaler"
    what = "is saved and never loaded back" if is_saved else "is not in the checkpoint"
    message = f"the optimizer is saved and loaded back, the state of {of} {what}"
    return Fault.at(save, message, tier=None if isinstance(each, Schedule) else Tier.NOTE)


def _counting(paths: list[Path]) -> Iterator[Instance]:
    """The schedules and scalers of a program that are stepped, and go by what they have counted."""
    caught_up = {identity_of(each) for path in paths for each in (*_caught_up(path), *_set(path))}
    for path in paths:
        told = {event.schedule for event in path.of(ScheduleStepped) if event.args and not _watches(event.schedule)}
        stepped = {event.schedule for event in path.of(ScheduleStepped)} - told
        made = [event.schedule for event in path.of(ScheduleMade)]
        gone = [each for each in made if each in stepped and identity_of(each) not in caught_up]
        yield from (each for each in gone if not each.escaped and not _is_set(each))
        scalers = {event.scaler for event in path.of(Stepped) if scales(event.scaler)}
        yield from (each for each in scalers if each is not None)


def _caught_up(path: Path) -> set[Schedule]:
    """The schedules that a loop without training steps on to where the program goes on, one with training from there."""
    trained = {turn.loop.site for event in path.of(Stepped) for turn in event.where.turns}
    steps = [(event.schedule, {turn.loop.site for turn in event.where.turns}) for event in path.of(ScheduleStepped)]
    trains = {schedule for schedule, loops in steps if loops & trained}
    idle = {schedule for schedule, loops in steps if loops and not loops & trained}
    return (idle | _skipped(path)) & trains


def _skipped(path: Path) -> set[Schedule]:
    """The schedules that a turn steps which trains nothing, as that of an epoch which the checkpoint has behind it."""
    trained = {turn for event in path.of(Stepped) for turn in event.where.turns}
    skipping = (event for event in path.of(ScheduleStepped) if event.where.turns and event.where.conditions)
    return {event.schedule for event in skipping if event.where.turns[-1] not in trained}


def _set(path: Path) -> Iterator[Schedule]:
    """The schedules that are told where to go on: by a number of the checkpoint, or one of their attributes."""
    for event in path.of(AttributeSet):
        if isinstance(event.object, Schedule):
            yield event.object
    for schedule in (event.schedule for event in path.of(ScheduleMade)):
        told = [*schedule.arguments.values(), *schedule.closed_over, schedule.length, schedule.factor]
        if any(each is not None and _is_read(each.key) for each in told):
            yield schedule


def _is_read(key: Hashable) -> bool:
    """Whether a number comes of what a checkpoint holds."""
    return isinstance(key, tuple) and (key[:1] == ("entry",) or any(map(_is_read, key)))


def _rolled_back(path: Path) -> Iterator[Instance]:
    """What gets its state back within the training that saved it, which goes on from there."""
    trained = {turn for event in path.of(Stepped) for turn in event.where.turns}
    for event in path.of(StateLoaded):
        if isinstance(event.object, Instance) and not trained.isdisjoint(event.where.turns):
            yield event.object


def _watches(schedule: Schedule) -> bool:
    """Whether a step takes a metric, and no epoch."""
    return schedule.name == "ReduceLROnPlateau"


def _is_set(schedule: Schedule) -> bool:
    """Whether a schedule may be told where to go on."""
    place = 4 if schedule.name == "get_cosine_schedule_with_warmup" else 3
    return schedule.open_arguments or schedule.argument("last_epoch", place) is not None


def _is_of(path: Path, each: Instance) -> bool:
    """Whether an object lives in a path, too: made at the same place, before."""
    return any(identity_of(other) == identity_of(each) for other in path.machine.objects)


def _without_optimizer(entry: Entry, paths: list[Path]) -> Iterator[Fault]:
    """Runs that go on at the epoch of a checkpoint, and leave the state of their optimizer in it."""
    read = read_keys(paths)
    loaded = {identity_of(event.object) for path in paths for event in path.of(StateLoaded)}
    unknown = any(not isinstance(event.object, Instance) for path in paths for event in path.of(StateLoaded))
    for path in entry.paths:
        for load in path.of(StateLoaded):
            source = getattr(load.state, "loaded", None)
            keys = read.get(source[0].site) if isinstance(source, tuple) else None
            if not isinstance(load.object, Module) or keys is None or unknown:
                continue
            for optimizer in {event.optimizer for event in path.of(Stepped)}:
                lost = (
                    isinstance(optimizer, Optimizer) and identity_of(optimizer) not in loaded and _has_state(optimizer)
                )
                begun = (
                    _goes_on(path, paths, load, optimizer, keys) if lost and isinstance(optimizer, Optimizer) else None
                )
                if begun is not None:
                    message = "the run goes on at the epoch of the checkpoint, and the state of its optimizer, which is saved there, is never loaded"
                    places = [each.site for each in path.of(StateRead) if is_constant(each.key, begun)]
                    yield Fault.at(load, message, *places[-1:])


def _goes_on(
    path: Path, paths: list[Path], load: StateLoaded, optimizer: Optimizer, keys: set[Hashable]
) -> Hashable | None:
    """The number of a checkpoint at which the epochs behind its load begin, if it holds the optimizer's state, too."""
    for save in saves_of([path], optimizer):
        if (key := _counted_on(load, save, keys)) is not None:
            return key
    for save in saves_of(paths, optimizer):
        items = save.value.items if isinstance(save.value, Mapping) else {}
        for key, value in items.items() if keys <= items.keys() else ():
            begun = counted_behind(path, load, value) if key in keys else ()
            if any(holds(each.first.key, ("entry", key)) for each in begun):
                return key
    return None


def _counted_on(load: StateLoaded, save: Written, keys: set[Hashable]) -> Hashable | None:
    """A number of a checkpoint that is saved again behind its load, further on."""
    items = save.value.items if isinstance(save.value, Mapping) and save.time > load.time else {}
    begun = {key: getattr(items[key], "counted_from", None) for key in keys & items.keys()}
    return next((key for key, each in begun.items() if each is not None and holds(each.key, ("entry", key))), None)


def _has_state(optimizer: Optimizer) -> bool:
    """Whether an optimizer keeps more than its options, and nobody out of sight has it."""
    momentum = optimizer.argument("momentum", 2)
    plain = optimizer.name == "SGD" and (momentum is None or is_constant(momentum, 0, 0.0))
    return in_sight([optimizer]) and not optimizer.open_arguments and not plain
