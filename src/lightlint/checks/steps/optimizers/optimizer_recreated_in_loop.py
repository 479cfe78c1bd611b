from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, CalledUnknown, OptimizerMade, ScheduleMade, StateLoaded, Stepped
from lightlint.explore.questions.certain import anyhow
from lightlint.explore.questions.queries import holds, in_batch, in_sight, speaks_of
from lightlint.finding import Tier
from lightlint.values.core import Site, Unknown, Value, is_constant
from lightlint.values.training import Optimizer, Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lightlint.explore.rehearsals import Entry, Path


class OptimizerRecreatedInLoop(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Optimizers made anew for parameters that one made at the same place has stepped."""
        found: list[OptimizerMade] = []
        for path in entry.paths:
            made: dict[tuple[Site, Tensor], Optimizer] = {}
            for event in path.of(OptimizerMade):
                optimizer = event.optimizer
                before = next((made[key] for each in optimizer.parameters if (key := (event.site, each)) in made), None)
                made.update({(event.site, each): optimizer for each in optimizer.parameters})
                if before is None or not event.where.turns or _is_told(event) or not _has_stepped(path, before, event):
                    continue
                if not _goes_on(path, event, before) or _is_begun_anew(path, event, before):
                    continue
                if _averages(optimizer) and in_sight([before, optimizer]) and _options(before) == _options(optimizer):
                    found.append(event)
        schedules = (event.schedule for path in entry.paths for event in path.of(ScheduleMade))
        scheduled = {each.optimizer for each in schedules}  # anew with it: cycles that begin again, perhaps
        for event in anyhow(found):
            what = "iteration" if in_batch(event.where) else "epoch"
            yield Fault.at(
                event,
                f"a new `{event.optimizer.name}` in each {what} over a model that stays: what it has averaged is lost each time",
                tier=Tier.NOTE if event.optimizer in scheduled else None,
            )


def _has_stepped(path: Path, before: Optimizer, event: OptimizerMade) -> bool:
    """Whether one has something to lose when the next is made: several made in a row, one for each of many, have not."""
    return any(step.optimizer is before and step.time < event.time for step in path.of(Stepped))


def _is_told(event: OptimizerMade) -> bool:
    """Whether a test that the program decides says when one is made."""
    return any(each.known for each in event.where.conditions)


def _goes_on(path: Path, event: OptimizerMade, before: Optimizer) -> bool:
    """Whether each turn takes the batches of one and the same loader, or one step; another task or stage may want its own."""
    around = event.where.turns[-1].loop
    if around.kind not in ("batch", "count", "while"):
        return False
    own = (before, event.optimizer)
    loops = [step.where.turns[len(event.where.turns) :] for step in path.of(Stepped) if step.optimizer in own]
    if any(turns and (len(turns) > 1 or turns[0].loop.kind != "batch") for turns in loops):
        return False
    drawn = [turns[0].loop.over for turns in loops if turns]
    return (
        all(_is_older(each, around.made) for each in drawn)
        and len({each.key for each in drawn if each is not None}) < 2
    )


def _is_older(source: Value | None, time: int) -> bool:
    """Whether a loader was there before a loop."""
    made = getattr(source, "made", None)
    return source is not None and not source.escaped and (made is None or made < time) and not _is_fresh(source)


def _is_fresh(source: Value) -> bool:
    """Whether a value is what a call out of sight gave, or a part of what a loop goes over."""
    return isinstance(source, Unknown) and (source.key is None or any(holds(source.key, each) for each in _FRESH))


_FRESH = ("called", "element")


def _is_begun_anew(path: Path, event: OptimizerMade, before: Optimizer) -> bool:
    """Whether the parameters get other values, or the model other layers, between the steps of one and the next."""
    first = min((step.time for step in path.of(Stepped) if step.optimizer is before), default=0)
    if set(before.parameters) != set(event.optimizer.parameters) or event.optimizer.name == "LBFGS":
        return True
    loaded = any(first < each.time < event.time for each in path.of(StateLoaded))
    called = any(_ANEW.search(each.name) for each in path.of(Called) if first < each.time < event.time)
    unknown = (each.callee.key for each in path.of(CalledUnknown) if first < each.time < event.time)
    return loaded or called or any(speaks_of(key, _ANEW) for key in unknown)


_ANEW = re.compile(r"(?i)reset|init|load_state|add_module|append|grow|freeze|prune|^modules$|^apply$|copy_$")


def _averages(optimizer: Optimizer) -> bool:
    """Whether an optimizer keeps something from step to step."""
    momentum = optimizer.argument("momentum", 2)
    return optimizer.name != "SGD" or (momentum is not None and not is_constant(momentum, 0, 0.0))


def _options(optimizer: Optimizer) -> dict[str, Hashable]:
    """What an optimizer is told besides its parameters: an iteration may ask for another."""
    return {name: each.key for name, each in optimizer.arguments.items() if name not in ("#0", "params")}
