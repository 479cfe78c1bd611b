from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Called, Logged, MetricUsed
from lightlint.explore.questions.queries import is_held
from lightlint.finding import Tier
from lightlint.values.core import Class, Constant, Site, Value
from lightlint.values.training import Instance, Module, Tensor, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_STEPS = {"training_step", "validation_step", "test_step"}
_MOVES = {"to", "cuda"}


class MetricNotRegistered(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for path in entry.paths:
            logged = _logged(path)
            for event in logged:
                metric = _own(path, event.value)
                if metric is not None and "metric_attribute" not in event.keywords:
                    what = (
                        f"the metric `{metric.name}` is no attribute of the module: Lightning cannot find it and raises"
                    )
                    yield Fault.of(event, what, argument="value")
            told = {event.value for event in logged}
            if not self._is_on_cpu:
                yield from (_fault(event) for event in _made_anew(path) if event.metric not in told)

    @property
    def _is_on_cpu(self) -> bool:
        """Whether a Trainer of the file runs on the CPU."""
        places = [self.names.argument(each, "accelerator") for each in self.facts.training.trainers]
        return any(each is not None and self.names.constant(each.value) == "cpu" for each in places)


def _logged(path: Path) -> list[Logged]:
    """Where a metric is logged as an object."""
    return [event for event in path.of(Logged) if isinstance(event.value, Instance) and not event.open_keywords]


def _own(path: Path, value: Value | None) -> Instance | None:
    """A metric of torchmetrics that no module or metric has ever had, alone or in a container."""
    if not isinstance(value, Instance) or value.kind != "metric" or isinstance(value.cls, Class) or value.escaped:
        return None
    held = [event.value for event in path.of(AttributeSet) if _is_holder(event.object)]
    for each in filter(_is_holder, path.machine.objects):
        held += each.attributes.values()
        if isinstance(each, Module) and each.items:
            held += each.items.values() if isinstance(each.items, dict) else each.items
    return None if any(is_held(each, value) for each in held) else value


def _is_holder(value: Value) -> bool:
    return isinstance(value, Module) or (isinstance(value, Instance) and value.kind == "metric")


def _made_anew(path: Path) -> Iterator[MetricUsed]:
    """The first uses, in steps, of metrics of which there is another one in each turn, with what lies on the device of the module."""
    moved = {event.receiver for event in path.of(Called) if event.path in _MOVES}
    first = {event.metric: event for event in reversed(path.of(MetricUsed))}
    made: dict[Site | None, list[MetricUsed]] = defaultdict(list)
    for metric, event in first.items():
        made[metric.site].append(event)
    for events in made.values():
        in_steps = all(each.where.hook in _STEPS and each.operation in ("forward", "update") for each in events)
        anew = len({each.where.turns for each in events}) == len(events) > 1
        for event in events[-1:] if in_steps and anew else ():
            if event.metric not in moved and _lies_elsewhere(event.args) and _own(path, event.metric) is not None:
                yield event


def _lies_elsewhere(given: list[Value]) -> bool:
    """Whether all that a metric is given lies on the device of the module, as far as anybody knows."""
    tensors = [each for value in given for each in tensors_in(value)]
    plain = all(isinstance(each, (Tensor, Constant)) for each in given)
    return plain and bool(tensors) and all(each.device == "cuda" and not each.escaped for each in tensors)


def _fault(event: MetricUsed) -> Fault:
    what = f"`{event.metric.name}` is made anew on the CPU in each `{event.where.hook}`: it refuses what is on the module's device"
    assert event.metric.site is not None
    return Fault(event.metric.site, what, tier=Tier.WARNING)
