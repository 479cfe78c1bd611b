from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import (
    Called,
    Forward,
    ParametersChanged,
    StateLoaded,
    StateTaken,
    Stepped,
    WeightSet,
    Written,
)
from lightlint.explore.questions.queries import in_sight, is_held, is_normalising_net
from lightlint.values.core import Library, is_constant, site_of
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site
    from lightlint.values.training import Tensor

_COUNTING = re.compile(r"(?:Sync)?BatchNorm(?:[123]d)?")


class AveragedWithoutBuffers(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules whose parameters follow another's by hand, that are evaluated with the statistics they began with."""
        if not all(path.finished for path in entry.paths):
            return
        for path in entry.paths:
            stepped = {each for event in path.of(Stepped) for each in event.parameters}
            for module in {event.module.unwrapped(): event for event in path.of(Forward) if not event.training}:
                mine = {*module.parameters()}
                changed = [(event, each) for event, each in _changes(path) if each in mine]
                layer = _counting(module)
                if not changed or mine & stepped or not layer or not in_sight(module.modules()):
                    continue
                if module.made > _begun(path):  # a copy of what has been trained
                    continue
                if not any(_touches(each, module) for each in entry.paths):
                    message = f"the average takes in parameters alone: `{layer}` keeps the statistics that it began with, and the module is evaluated with them"
                    first = changed[0][0]
                    yield Fault(_goes_over(first), message, None, (first.site,), first.where.places[1:])


def _changes(path: Path) -> Iterator[tuple[ParametersChanged | WeightSet, Tensor]]:
    """The parameters that are changed by hand once training has begun."""
    begun = _begun(path)
    for event in path.of(ParametersChanged):
        if event.time > begun and not event.name.startswith("init."):
            yield from ((event, each) for each in event.parameters)
    yield from ((event, event.parameter) for event in path.of(WeightSet) if event.time > begun)


def _begun(path: Path) -> float:
    """When training has begun."""
    return min((event.time for event in path.of(Stepped)), default=math.inf)


def _goes_over(event: ParametersChanged | WeightSet) -> Site:
    """What the loop goes over that follows the parameters one by one: the buffers are not in it."""
    turns = event.where.turns
    around = event.where.calls[-1].turns if event.where.calls else 0
    within = max((depth for depth, turn in enumerate(turns, 1) if turn.loop.kind == "batch"), default=0)
    loops = [turn.loop for turn in turns[max(around, within) :]]
    node = getattr(loops[-1].node, "iter", None) if loops else None
    return site_of(event.site[0], node) if isinstance(node, ast.expr) else event.site


def _counting(module: Module) -> str:
    """A layer that keeps running statistics, "" for none."""
    for each in module.modules():
        if isinstance(each.cls, Library) and is_normalising_net(each.cls.path):
            return "BatchNorm2d"
        tracks = not each.open_arguments and not is_constant(each.arguments.get("track_running_stats"), False)
        if isinstance(each.cls, Library) and _COUNTING.fullmatch(each.name) and tracks:
            return each.name
    return ""


def _touches(path: Path, module: Module) -> bool:
    """Whether a rehearsal gives a module other statistics, or may."""
    parts = {(each.site, each.serial) for each in module.modules()}

    def is_part(value: object) -> bool:
        return isinstance(value, Module) and any((each.site, each.serial) in parts for each in value.modules())

    kept, begun = [event.value for event in path.of(Written)], _begun(path)
    return (
        any(event.training and is_part(event.module) for event in path.of(Forward))
        or any(event.time > begun and is_part(event.object) for event in path.of(StateLoaded))
        or any(
            each.time > begun and is_part(each.object) and not any(is_held(one, each.state) for one in kept)
            for each in path.of(StateTaken)
        )
        or any(event.path in ("buffers", "named_buffers") and is_part(event.receiver) for event in path.of(Called))
        or any(event.name == "update_bn" or _uses_buffers(event) for event in path.of(Called))
    )


def _uses_buffers(event: Called) -> bool:
    given = event.argument("use_buffers", 4) if event.name == "AveragedModel" else None
    return given is not None and not is_constant(given, False)
