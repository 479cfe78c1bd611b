from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward
from lightlint.explore.queries import in_sight, on_some_ranks
from lightlint.facts.rank_tests import on_some_ranks as surely_on_some_ranks
from lightlint.facts.rank_tests import other_ways
from lightlint.finding import Tier
from lightlint.values.core import Unknown, is_constant
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class DdpForwardOnOneRank(Check):
    def visit_Call(self, call: cst.Call) -> None:
        models = self.facts.data_parallel
        if not self.facts.forwards.leads_to_forward(call) or not surely_on_some_ranks(self.facts, call):
            return
        if any(self._may_run(each) for each in other_ways(self.facts, call)) or self._unwraps(call):
            return
        trains = self.facts.steps.leads(call, self.loops.is_backward)
        buffered = models.has_buffers
        if (buffered is False or self._exchanges_nothing(call)) and not trains:
            return
        waits = "gradients" if trains else "buffers" if buffered else "any buffers"
        self.report(
            call,
            f"`{self.code.text_of(call.func)}` runs a DDP model on some ranks only, which exchanges {waits} with all",
            tier=None if trains or buffered else Tier.WARNING,
        )

    def _unwraps(self, call: cst.Call) -> bool:
        """Whether what is called takes the model out of its wrapper itself: `model = model.module`."""
        callee = self.facts.steps.callee(call)
        assigns = self.tree.own(callee.body, cst.Assign) if callee is not None else ()
        return any(isinstance(each.value, cst.Attribute) and each.value.attr.value == "module" for each in assigns)

    def _may_run(self, call: cst.Call) -> bool:
        """Whether a call of the other ranks runs a DDP model, or hands one to code out of sight."""
        models = self.facts.data_parallel
        return self.facts.forwards.leads_to_forward(call) or any(models.is_wrapped(arg.value) for arg in call.args)

    def _exchanges_nothing(self, call: cst.Call) -> bool:
        """Whether what a call runs forward, as far as rehearsals come there, goes around DDP or has no buffers."""
        start, end = self.facts.positions.span(call)
        rehearsed = self.facts.rehearsed
        run = [
            event
            for entry in rehearsed.entries
            for event in entry.of(Forward)
            for site in (event.site, *(each.site for each in event.where.calls))
            if rehearsed.span(site) == (start, end)
        ]
        return bool(run) and not any(
            event.module.wrapper == "ddp" and has_buffers(event.module) is not False for event in run
        )

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
