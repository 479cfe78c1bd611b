from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward
from lightlint.explore.questions.queries import in_sight, on_some_ranks
from lightlint.finding import Tier
from lightlint.values.core import Unknown, is_constant
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class DdpForwardOnOneRank(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Forward passes through DDP that a test of the rank keeps some ranks from."""
        for event in on_some_ranks(entry, Forward, lambda each: each.module.wrapper == "ddp"):
            trains = event.grad and any(graph.used for graph in event.graph)
            buffered = has_buffers(event.module)
            if trains or buffered is not False:
                waits = "gradients" if trains else "buffers" if buffered else "any buffers"
                message = f"a DDP model runs on some ranks only here, which exchanges {waits} with all"
                tier = None if trains or buffered else Tier.WARNING
                yield Fault(event.where.behind("rank"), message, tier, (event.site,))


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
