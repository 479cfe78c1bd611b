from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Appended, AttributeSet, Event
from lightlint.explore.questions.queries import inside
from lightlint.finding import Tier
from lightlint.values.core import Class, Constant, Function, Sequence, Value, is_constant, text_of
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_EMPTYING = {"clear", "zero_", "fill_", "pop"}
_OWN = {"reset", "forward", "__getattr__", "__setattr__", "state_dict", "_reduce_states"}


class MetricStateNotRegistered(Check):
    def _empties(self, call: cst.Call, name: str) -> bool:
        """Whether a call takes all out of an attribute of that name."""
        func = call.func
        held = func.value if isinstance(func, cst.Attribute) and func.attr.value in _EMPTYING else None
        return isinstance(held, cst.Attribute) and held.attr.value == name

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Attributes that `update` of a metric adds to and `compute` reads, and that are no states."""
        for path in entry.paths:
            for event, metric, name in (*_counted(path), *_gathered(path)):
                states, cls = metric.attributes.get("#states"), metric.cls
                if not inside(event.where, "update") or not isinstance(cls, Class):
                    continue
                known = states is None or (isinstance(states, Sequence) and not states.more)
                registered = isinstance(states, Sequence) and any(text_of(each) == name for each in states.items)
                if not known or registered or any(cls.find(own) is not None for own in _OWN):
                    continue
                if self._is_kept(name) and _reads(cls.find("compute"), name):
                    message = (
                        f"`{name}` is no state of the metric: `reset` leaves it as it is, and ranks do not sum it up"
                    )
                    yield Fault.of(event, message, tier=None if event.where.phase else Tier.WARNING)

    def _is_kept(self, name: str) -> bool:
        """Whether nothing in the file sets an attribute anew, or empties it."""
        sets = [each.target for each in self.tree.all(cst.AssignTarget) if isinstance(each.target, cst.Attribute)]
        alone = sum(each.attr.value == name for each in sets) == 1
        return alone and not any(self._empties(each, name) for each in self.tree.all(cst.Call))


def _counted(path: Path) -> Iterator[tuple[Event, Instance, str]]:
    """Numbers and tensors that a metric counts up."""
    for event in path.of(AttributeSet):
        if isinstance(event.object, Instance) and event.object.kind == "metric" and _counts(event):
            yield event, event.object, event.name


def _gathered(path: Path) -> Iterator[tuple[Event, Instance, str]]:
    """Lists, empty at first, that a metric adds to."""
    appended = path.of(Appended)
    metrics = [each for each in path.machine.objects if each.kind == "metric"] if appended else []
    held = {id(value): (each, name) for each in metrics for name, value in each.attributes.items()}
    for event in appended:
        box = event.container
        if id(box) in held and len(box.items) == sum(each.container is box for each in appended):
            yield event, *held[id(box)]


def _counts(event: AttributeSet) -> bool:
    """Whether an attribute is counted up, from nothing at first."""
    before, now = event.before, event.value
    from_nothing = is_constant(before, 0, 0.0) or (isinstance(before, Tensor) and before.origin is not None)
    return from_nothing and not isinstance(now, Constant)


def _reads(function: Value | None, name: str) -> bool:
    """Whether a method looks at an attribute of its object."""
    nodes = ast.walk(function.node) if isinstance(function, Function) else ()
    return any(isinstance(each, ast.Attribute) and each.attr == name for each in nodes)
