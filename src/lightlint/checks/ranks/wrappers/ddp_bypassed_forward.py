from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Cleared, Collective, Forward, Stepped
from lightlint.values.core import Class
from lightlint.values.training import Graph, Module, Tensor, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site


class DdpBypassedForward(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses of a model under DDP whose pass went around the wrapper, where nothing exchanges gradients by hand."""
        for path in entry.paths:
            exchanged = (t for event in path.of(Collective) for value in event.args for t in tensors_in(value))
            if not any(each.gradient_of for each in exchanged):
                for forward in _around(path):
                    message = "this runs forward past DDP: no rank gets the gradients of the others"
                    yield Fault(_entered(forward), message, None, (), forward.where.places)


def _entered(forward: Forward) -> Site:
    """Where a pass around a wrapper begins: the call of the first method of the inner module, or of the module itself."""
    wrapper = next((each.bypassed.within_ddp for each in forward.graph if each.bypassed is not None), None)
    inner = wrapper.wraps if wrapper is not None else None
    line = inner.cls.lineage() if isinstance(inner, Module) and isinstance(inner.cls, Class) else []
    return next((each.site for each in forward.where.calls if each.function.owner in line), forward.site)


@dataclass
class _Recorded:
    """The passes that recorded graphs around a wrapper, and the wrappers that others went through."""

    around: dict[Graph, Forward] = field(default_factory=dict)
    through: dict[Graph, Module] = field(default_factory=dict)

    def add(self, event: Forward) -> None:
        """Take a forward pass in."""
        if not event.module.escaped:
            self.around.update({graph: event for graph in event.graph if graph.bypassed is not None})
        if event.module.wrapper == "ddp":
            self.through.update(dict.fromkeys(event.graph, event.module))


def _around(path: Path) -> Iterator[Forward]:
    """The forward passes around DDP from which a model is trained: by a loss of nothing else, or by one that is also of
    another model, where an optimizer uses what it gave this one."""
    seen = _Recorded()
    waiting: list[tuple[Forward, set[Tensor]]] = []
    for event in path.events:
        if isinstance(event, Forward):
            seen.add(event)
        elif isinstance(event, Backward) and event.loss is not None and not event.loss.escaped:
            graphs = [each for each in event.loss.graph if not each.guess]
            found = [each for each in graphs if each in seen.around]
            if found and len(found) == len(graphs):
                yield seen.around[found[0]]
            elif found:
                waiting += _beside_others(event, graphs, seen)
        elif isinstance(event, Cleared):
            waiting = [each for each in waiting if each[1].isdisjoint(event.parameters)]
        elif isinstance(event, Stepped):
            yield from (forward for forward, reached in waiting if not reached.isdisjoint(event.parameters))


def _beside_others(event: Backward, graphs: list[Graph], seen: _Recorded) -> Iterator[tuple[Forward, set[Tensor]]]:
    """The passes around wrappers through which no other pass of a loss went, with the parameters that it reaches there."""
    used = [seen.through[each] for each in graphs if each in seen.through]
    for graph in graphs:
        wrapper = graph.bypassed.within_ddp if graph.bypassed is not None else None
        if graph in seen.around and wrapper is not None and wrapper not in used:
            owned = {each for each in event.parameters if each.owner is not None and each.owner.within_ddp is wrapper}
            yield seen.around[graph], owned
