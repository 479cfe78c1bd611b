from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import CalledUnknown, Collective, Event, Forward
from lightlint.explore.questions.queries import in_sight, on_some_ranks
from lightlint.finding import Tier
from lightlint.values.core import Unknown, is_constant
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site


class DdpForwardOnOneRank(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Forward passes through DDP that a test of the rank keeps some ranks from."""
        runs = {id(event): path for pair in entry.pairs() for path in pair for event in path.of(Forward)}
        found: dict[Site, list[_Alone]] = {}
        for event in on_some_ranks(entry, Forward, lambda each: each.module.wrapper == "ddp"):
            alone = _Alone(event, runs[id(event)])
            if alone.trains or (alone.buffered is not False and not alone.sent_nothing()):
                found.setdefault(event.where.behind("rank"), []).append(alone)
        for place, passes in found.items():
            first = next((each for each in passes if each.trains), passes[0])
            waits = "gradients" if first.trains else "buffers" if first.buffered else "any buffers"
            message = f"a DDP model runs on some ranks only here, which exchanges {waits} with all"
            surely = first.trains or (first.buffered and not any(each.steps_follow() for each in passes))
            tier = None if surely else Tier.WARNING if first.buffered else Tier.NOTE
            yield Fault(place, message, tier, (first.event.site,))


@dataclass(frozen=True)
class _Alone:
    """A forward pass on some ranks only, and the path that it is on."""

    event: Forward
    path: Path

    @property
    def trains(self) -> bool:
        return self.event.grad and any(graph.used for graph in self.event.graph)

    @property
    def buffered(self) -> bool | None:
        return has_buffers(self.event.module)

    def sent_nothing(self) -> bool:
        """Whether the pass before was without gradients, or may have been: DDP sends buffers only behind one with them."""
        earlier = [each for each in self.path.of(Forward) if each.module is self.event.module and self._is_before(each)]
        since = earlier[-1].time if earlier else self.event.module.made
        unknown = (each for each in self.path.of(CalledUnknown) if since < each.time and self._is_before(each))
        if any(value is self.event.module for each in unknown for value in each.values):
            return True
        return bool(earlier) and (not earlier[-1].grad or earlier[-1].held_back is not None)

    def _is_before(self, event: Event) -> bool:
        return event.time < self.event.time

    def steps_follow(self) -> bool:
        """Whether all ranks come to a training pass next, and to no collective before it: its gradients may go with it."""
        passes = (each.time for each in self.path.of(Forward) if each.module.wrapper == "ddp" and each.grad)
        collectives = (each.time for each in self.path.of(Collective) if not each.where.depends_on("rank"))
        after, together = (
            min((time for time in times if time > self.event.time), default=inf) for times in (passes, collectives)
        )
        return after < together


def has_buffers(wrapper: Module) -> bool | None:
    """Whether a module that DDP wraps has buffers that it sends before each forward pass; None for one out of sight."""
    if is_constant(wrapper.arguments.get("broadcast_buffers"), False):
        return False
    below = wrapper.modules()
    if any(each.buffers or ("BatchNorm" in each.name and not each.opaque) for each in below):
        return True
    seen = wrapper.sees_all() and isinstance(wrapper.wraps, Module) and in_sight(below)
    return False if seen and not any(map(_may_hold_others, below)) else None


def _may_hold_others(module: Module) -> bool:
    """Whether an attribute may be a module of a library out of sight."""
    held = module.attributes.values()
    return any(isinstance(value, Unknown) and value.key is None and not value.plain for value in held)
