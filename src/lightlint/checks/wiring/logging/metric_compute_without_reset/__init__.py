from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.wiring.logging.metric_compute_without_reset.running_metrics import (
    RunningMetrics,
    counts_one_epoch,
    own_counts_one_epoch,
)
from lightlint.engine.events import MetricUsed
from lightlint.explore.questions.queries import is_held
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.objects.classes import MODULE
from lightlint.facts.project.mentions import is_changed_elsewhere
from lightlint.facts.values.displays import Display, items
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_after
from lightlint.values.core import Library

if TYPE_CHECKING:
    from lightlint.engine.frames import Loop, Turn
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Value

_ONCE_AN_EPOCH = {
    "on_train_epoch_end", "on_validation_epoch_end", "training_epoch_end", "validation_epoch_end", "on_validation_end",
    "on_train_epoch_start", "on_validation_epoch_start",
}  # fmt: skip
_CONTAINERS = {"torch.nn.ModuleDict", "torch.nn.ModuleList"}
_GROWING = {"update", "forward"}
_READING = {"compute", "device", "dtype"}


class MetricComputeWithoutReset(Check):
    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        if not self.classes.is_a(node, MODULE):
            return
        uses: dict[str, list[cst.Attribute]] = {}
        for each in self.tree.within(node, cst.Attribute):
            if self.classes.is_self(each.value):
                uses.setdefault(each.attr.value, []).append(each)
        for name, places in uses.items():
            if self._is_metric(node, name):
                self._look_at(node, places)
            elif self._holds_metrics(node, name):
                self._look_at(node, list(map(self._item, places)))

    def visit_Call(self, call: cst.Call) -> None:
        if self.names.method(call) != "compute" or not RunningMetrics(self.facts).is_never_reset(call):
            return
        name = self.names.key(call.func.value) if isinstance(call.func, cst.Attribute) else ""
        message = f"`{name}` is computed after each epoch and never reset: it goes on with the epochs before"
        self.report(call, message, repair=self._repair(call, name))

    def _is_metric(self, node: cst.ClassDef, name: str) -> bool:
        """Whether an attribute surely holds one of torchmetrics' metrics that counts one epoch."""
        values = self.classes.attribute_values(node, name)
        return len(values) == 1 and self._makes_metric(values[0])

    def _makes_metric(self, value: cst.BaseExpression) -> bool:
        made = self.names.call(self._original(value)) or ""
        return counts_one_epoch(made) or own_counts_one_epoch(self.facts, made)

    def _holds_metrics(self, node: cst.ClassDef, name: str) -> bool:
        """Whether an attribute surely holds a dict or list of such metrics: `nn.ModuleDict({"val": Accuracy(...)})`."""
        values = self.classes.attribute_values(node, name)
        made = values[0] if len(values) == 1 else None
        if isinstance(made, cst.Call) and self.names.call(made) in _CONTAINERS and len(made.args) == 1:
            made = made.args[0].value
        held = items(made) if isinstance(made, Display) else []
        return bool(held) and all(map(self._makes_metric, held))

    def _item(self, place: cst.Attribute) -> cst.BaseExpression:
        """The item that is taken out of a container where it is named; the container where anything else is done with it."""
        above = self.tree.parent(place)
        taken = isinstance(above, cst.Subscript) and above.value is place
        return above if taken and isinstance(above, cst.Subscript) else place

    def _original(self, value: cst.BaseExpression) -> cst.BaseExpression:
        """What a copy is made of: the collection in `metrics.clone(prefix="val_")`."""
        if (
            isinstance(value, cst.Call)
            and self.names.method(value) == "clone"
            and isinstance(value.func, cst.Attribute)
        ):
            sources = self.facts.reaching.sources(value.func.value)
            return sources[0] if len(sources) == 1 else value
        return value

    def _look_at(self, node: cst.ClassDef, places: Sequence[cst.BaseExpression]) -> None:
        computed: list[cst.Call] = []
        grows: list[cst.BaseExpression] = []
        for place in places:
            above = self.tree.parent(place)
            call = self.tree.parent(above) if isinstance(above, cst.Attribute) else above
            if isinstance(above, (cst.AssignTarget, cst.AnnAssign)) and isinstance(place, cst.Attribute):
                continue
            if isinstance(above, cst.Call) and above.func is place:
                grows.append(place)
            elif isinstance(above, cst.Attribute) and above.attr.value in _GROWING | _READING:
                grows += [place] if above.attr.value in _GROWING else []
                if above.attr.value == "compute" and isinstance(call, cst.Call):
                    computed.append(call)
            else:
                return  # reset, logged or handed on: others may reset it
        each_epoch = [call for call in computed if self._runs_each_epoch(call) and self._is_one_of(call, grows)]
        if each_epoch and not self._resets_unnamed(node):
            call = each_epoch[-1]
            if any(self._may_be_reset_elsewhere(each) for each in places):
                return
            name = self.code.text_of(call.func.value) if isinstance(call.func, cst.Attribute) else ""
            message = f"`{name}` is computed after each epoch and never reset: it goes on with the epochs before"
            self.report(call, message, repair=self._repair(call, name))

    def _may_be_reset_elsewhere(self, place: cst.BaseExpression) -> bool:
        held = place.value if isinstance(place, cst.Subscript) else place
        name = held.attr.value if isinstance(held, cst.Attribute) else None
        return name is not None and self._is_changed_elsewhere(name)

    def _is_changed_elsewhere(self, name: str) -> bool:
        return is_changed_elsewhere(self.facts.project, self.facts.source, name)

    def _is_one_of(self, call: cst.Call, grown: list[cst.BaseExpression]) -> bool:
        """Whether a metric that is computed surely is, or may be by its key, one of those that grow."""
        metric = call.func.value if isinstance(call.func, cst.Attribute) else None
        keys = self._keys(metric)
        return any(not isinstance(each, cst.Subscript) or keys & self._keys(each) for each in grown)

    def _keys(self, item: cst.CSTNode | None) -> frozenset[object]:
        """The keys, or the place, by which an item may be taken out of its container."""
        index = item.slice[0].slice if isinstance(item, cst.Subscript) and len(item.slice) == 1 else None
        if not isinstance(index, cst.Index):
            return frozenset()
        known = self.facts.strings.possible(index.value)
        return known if known is not None else frozenset([self.names.constant(index.value)]) - {UNKNOWN}

    def _runs_each_epoch(self, call: cst.Call) -> bool:
        return any(hook.name in _ONCE_AN_EPOCH for hook in self.hooks.around(call))

    def _resets_unnamed(self, node: cst.ClassDef) -> bool:
        """Whether the class resets something that is no attribute by name: a loop over its modules, a helper's argument."""
        for call in self.tree.within(node, cst.Call):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value in {"reset", "_reset_metrics", "reset_metrics"}:
                receiver = func.value
                if not (isinstance(receiver, cst.Attribute) and self.classes.is_self(receiver.value)):
                    return True
        return False

    def _repair(self, call: cst.Call, name: str) -> Repair | None:
        statement = self.tree.statement(call)
        receiver = self.code.text_of(call.func.value) if isinstance(call.func, cst.Attribute) else name
        if statement is None or isinstance(statement, cst.Return):
            return None
        draft = insert_after(self.code, statement, f"{receiver}.reset()")
        return Repair("reset it after it is computed", draft, Applicability.UNSAFE)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Metrics computed in two epochs that no path resets or leaves to Lightning."""
        cared_for = {event.metric.site for event in entry.of(MetricUsed) if event.operation in ("reset", "log")}
        for path in entry.paths:
            computed: dict[object, MetricUsed] = {}
            filled: dict[object, int] = {}
            for event in path.of(MetricUsed):
                epochs = _epochs(event)
                if event.metric.site in cared_for or event.metric.escaped or epochs is None:
                    continue
                if event.operation in ("update", "forward"):
                    filled[event.metric] = event.time
                elif event.operation == "compute" and event.metric in filled and not event.where.within("batch"):
                    before = computed.setdefault((event.metric, epochs.loop, event.site), event)
                    again = _epochs(before) != epochs and filled[event.metric] > before.time
                    if again and not any(map(self._is_changed_elsewhere, _names(path, event.metric))):
                        yield Fault.at(
                            event,
                            "the metric is computed after each epoch and never reset: it averages over all epochs so far",
                        )


def _names(path: Path, metric: Value) -> set[str]:
    """The attributes that hold a metric."""
    return {name for each in path.machine.objects for name, value in each.attributes.items() if value is metric}


def _epochs(event: MetricUsed) -> Turn | None:
    """The epoch in which a metric is used that is one of a single epoch: no best value, no total, none of a list of models.

    A loop over the parts of a collection, or one that takes another metric in each turn, has none.
    """
    kept = event.metric.name in ("MaxMetric", "MinMetric", "SumMetric", "CatMetric", "RunningMean", "RunningSum")
    if kept or not isinstance(event.metric.cls, Library):
        return None
    turns = [turn for turn in event.where.turns if turn.loop.kind != "known" and not _takes(turn.loop, event.metric)]
    return turns[-1] if turns and turns[-1].loop.kind in ("count", "epoch", "batch") else None


def _takes(loop: Loop, metric: Value) -> bool:
    """Whether a loop takes a metric, or the container it is in, by the number of its turn: another turn takes another."""
    return len({index for index, each in loop.taken if is_held(each, metric)}) > 1
