from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Cleared, Collective, Forward, Stepped
from lightlint.explore.questions.groups import with_groups
from lightlint.values.core import Class, Function
from lightlint.values.training import Graph, Module, Tensor, tensors_in

if TYPE_CHECKING:
    from lightlint.engine.frames import Call
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site


class DdpBypassedForward(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses of a model under DDP whose pass went around the wrapper, where nothing exchanges gradients by hand."""
        for path in with_groups(entry):
            exchanged = (t for event in path.of(Collective) for value in event.args for t in tensors_in(value))
            if not any(each.gradient_of for each in exchanged):
                for forward in _around(path):
                    message = "this runs forward past DDP: no rank gets the gradients of the others"
                    yield Fault(_entered(forward), message, None, (), forward.where.places)


def _entered(forward: Forward) -> Site:
    """Where a pass around a wrapper begins: the call of the first method of the inner module, or of the module itself; where
    a function was given that module, the call that gave it."""
    wrapper = next((each.bypassed.within_ddp for each in forward.graph if each.bypassed is not None), None)
    inner = wrapper.wraps if wrapper is not None else None
    line = inner.cls.lineage() if isinstance(inner, Module) and isinstance(inner.cls, Class) else []
    calls = forward.where.calls
    depth = next((depth for depth, each in enumerate(calls) if each.function.owner in line), len(calls))
    site = calls[depth].site if depth < len(calls) else forward.site
    used = _call_at(site, calls[depth - 1]) if depth else None
    model = used.func if used is not None else None
    if depth < len(calls) and isinstance(model, ast.Attribute):
        model = model.value
    for place in range(depth - 1, -1, -1):
        call = calls[place]
        if not isinstance(model, ast.Name) or model.id not in _parameters(call.function):
            break
        site = call.site
        given = _call_at(site, calls[place - 1]) if place else None
        model = _argument(given, call.function, model.id) if given is not None else None
    return site


def _call_at(site: Site, around: Call) -> ast.Call | None:
    """The call at a place in a function that is being run."""
    calls = (each for each in ast.walk(around.function.node) if isinstance(each, ast.Call))
    return next((e for e in calls if (e.lineno, e.col_offset, e.end_lineno, e.end_col_offset) == site[1:]), None)


def _parameters(function: Function) -> list[str]:
    taken = function.node.args
    return [each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]


def _argument(call: ast.Call, function: Function, name: str) -> ast.expr | None:
    """What a call gives a function under a name."""
    place = _parameters(function).index(name) - (function.owner is not None)
    named = (each.value for each in call.keywords if each.arg == name)
    return next(named, call.args[place] if 0 <= place < len(call.args) else None)


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
