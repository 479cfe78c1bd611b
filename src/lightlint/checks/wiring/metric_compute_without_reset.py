from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.classes import MODULE
from lightlint.facts.running_metrics import RunningMetrics, counts_one_epoch
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_after

_ONCE_AN_EPOCH = {
    "on_train_epoch_end", "on_validation_epoch_end", "training_epoch_end", "validation_epoch_end", "on_validation_end",
    "on_train_epoch_start", "on_validation_epoch_start",
}  # fmt: skip
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
                self._look_at(node, name, places)

    def visit_Call(self, call: cst.Call) -> None:
        if self.names.method(call) != "compute" or not RunningMetrics(self.facts).is_never_reset(call):
            return
        name = self.names.key(call.func.value) if isinstance(call.func, cst.Attribute) else ""
        message = f"`{name}` is computed after each epoch and never reset: it goes on with the epochs before"
        self.report(call, message, repair=self._repair(call, name))

    def _is_metric(self, node: cst.ClassDef, name: str) -> bool:
        """Whether an attribute surely holds one of torchmetrics' metrics that counts one epoch."""
        values = self.classes.attribute_values(node, name)
        made = self.names.call(self._original(values[0])) if len(values) == 1 else None
        return counts_one_epoch(made or "")

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

    def _look_at(self, node: cst.ClassDef, name: str, places: list[cst.Attribute]) -> None:
        computed: list[cst.Call] = []
        grows = False
        for place in places:
            above = self.tree.parent(place)
            call = self.tree.parent(above) if isinstance(above, cst.Attribute) else above
            if isinstance(above, cst.AssignTarget):
                continue
            if isinstance(above, cst.Call) and above.func is place:
                grows = True
            elif isinstance(above, cst.Attribute) and above.attr.value in _GROWING | _READING:
                grows = grows or above.attr.value in _GROWING
                if above.attr.value == "compute" and isinstance(call, cst.Call):
                    computed.append(call)
            else:
                return  # reset, logged or handed on: others may reset it
        each_epoch = [call for call in computed if self._runs_each_epoch(call)]
        if grows and each_epoch and not self._resets_unnamed(node):
            call = each_epoch[-1]
            message = f"`self.{name}` is computed after each epoch and never reset: it goes on with the epochs before"
            self.report(call, message, repair=self._repair(call, name))

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
