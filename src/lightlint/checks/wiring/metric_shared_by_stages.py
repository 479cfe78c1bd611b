from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import MetricUsed
from lightlint.facts.classes import MODULE

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_STARTS = ("on_validation_epoch_start", "on_validation_start", "on_validation_model_eval")


class MetricSharedByStages(Check):
    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        if not self.classes.is_a(node, MODULE):
            return
        for assign in self.tree.within(node, cst.Assign):
            target = assign.targets[0].target
            if len(assign.targets) != 1 or not isinstance(target, cst.Attribute):
                continue
            if self.classes.self_class(target.value) is node and self._is_metric(node, target.attr.value):
                self._judge(node, target)

    def _is_metric(self, node: cst.ClassDef, name: str) -> bool:
        """Whether an attribute is one torchmetrics metric, made by a constructor in sight."""
        sources = self.classes.attribute_sources(node, name)
        value = sources[0][0] if len(sources) == 1 and not sources[0][1] else None
        made = self.names.call(value) or ""
        return made.startswith("torchmetrics.") and made.rpartition(".")[2][:1].isupper()

    def _judge(self, node: cst.ClassDef, target: cst.Attribute) -> None:
        key = self.names.key(target)
        calls = self.tree.within(node, cst.Call)
        fed = {
            hook.name
            for call in calls
            if self.names.key(call.func) in {key, f"{key}.update"} and not self.facts.conditions(call)
            for hook in self.hooks.around(call)
        }
        if not {"training_step", "validation_step"} <= fed or not any(self._is_read(call, key) for call in calls):
            return
        resets = [call for call in calls if self.names.key(call.func) == f"{key}.reset"]
        started = {hook.name for call in resets for hook in self.hooks.around(call)}
        if started.isdisjoint(_STARTS):
            self.report(target, f"`{key}` takes in batches of training and of validation: what it computes mixes both")

    def _is_read(self, call: cst.Call, key: str) -> bool:
        """Whether a call takes what a metric has gathered: `compute`, or logging the metric itself."""
        if self.names.key(call.func) == f"{key}.compute":
            return True
        return self.facts.logs.is_log(call) and any(self.names.key(arg.value) == key for arg in call.args)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Metrics that take batches of one stage while they hold another's."""
        for path in entry.paths:
            cleared = {event.metric for event in path.of(MetricUsed) if event.operation == "reset"}
            read = {event.metric for event in path.of(MetricUsed) if event.operation in ("compute", "log")}
            holds: dict[object, str] = {}
            for event in path.of(MetricUsed):
                phase = event.where.phase
                if phase not in ("train", "val", "test") or event.metric.escaped:
                    continue
                if event.operation in ("update", "forward") and event.metric not in cleared:
                    before = holds.setdefault(event.metric, phase)
                    if before != phase and event.metric in read:
                        yield Fault.at(
                            event,
                            f"the metric takes {phase} batches while it holds those of {before}: one object serves both",
                        )
